/*-------------------------------------------------------------------------
 *
 * serve.h
 *		The side that is asked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_SERVE_H
#define CCM_SERVE_H

extern void ccm_install_log_filter(void);
extern void ccm_hush_connecting(bool connecting);
extern void ccm_require_library(void);

#endif							/* CCM_SERVE_H */
