package edge

import (
	"context"
	"reflect"
	"time"

	"howdah/internal/model/route"
	"howdah/internal/state"
)

// noteWays hands over to tellWays where the endpoints lead now. Only the newest state matters.
func (e *Edge) noteWays() {
	ways := map[string]route.Way{}
	for id, point := range e.points {
		way := route.Way{Route: id, Edge: e.Name, Listen: point.Listen.String()}
		for _, target := range point.Targets {
			way.Targets = append(way.Targets, target.String())
		}
		ways[id] = way
	}
	select {
	case <-e.told:
	default:
	}
	e.told <- ways
}

// tellWays records where this edge leads clients. It runs in its own goroutine, as leading must not
// wait for it. A record that could not be written is written later, when the next full sync hands
// everything over again.
func (e *Edge) tellWays(ctx context.Context) {
	for first := true; ; {
		select {
		case <-ctx.Done():
			return
		case ways := <-e.told:
			switch err := e.writeWays(ctx, ways); {
			case err == nil && first:
				first = false
				close(e.led)
			case err != nil && ctx.Err() == nil:
				e.Log.Warn("record where endpoints lead", "error", err)
			}
		}
	}
}

func (e *Edge) writeWays(ctx context.Context, ways map[string]route.Way) error {
	var ops []state.Op
	for id, way := range ways {
		last, err := state.Load[route.Way](e.cache, state.Way(id, e.Name))
		if err != nil || !reflect.DeepEqual(last.Value, way) {
			ops = append(ops, state.Put(state.Way(id, e.Name), way))
		}
	}
	for _, old := range state.LoadAll[route.Way](e.cache, state.WayRoot) {
		if _, leads := ways[old.Value.Route]; !leads && old.Value.Edge == e.Name {
			ops = append(ops, state.Delete(old.Key))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	revision, err := e.Store.CommitEach(ctx, ops)
	if err != nil {
		return err
	}
	return e.cache.WaitRevision(ctx, revision)
}
