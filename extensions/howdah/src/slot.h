/*-------------------------------------------------------------------------
 *
 * slot.h
 *		What the files about slots ask of each other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_SLOT_H
#define HOWDAH_SLOT_H

extern void howdah_clear_slots(void);
extern bool howdah_replicates(Oid role);
extern void howdah_check_replicating(void);
extern void howdah_claim_sender(void);
extern bool howdah_sender_is_over(void);
extern void howdah_claim_slot(const char *name, const char *plugin);
extern void howdah_slot_claimed(void);
extern void howdah_check_slot(const char *name, bool decodes);

#endif							/* HOWDAH_SLOT_H */
