import type { CallFeature } from '../../call/feature.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { ChunkGaps } from './chunk-gaps.ts'
import { tracedCall } from './traced-call.ts'
import { tracedHit } from './traced-hit.ts'

/** Values that are measured while a call runs. */
interface Traced {
  /** The client's id of its session; undefined if it did not send one. */
  readonly sessionName: string | undefined
  /** Undefined if the call is not a stream. */
  readonly gaps: ChunkGaps | undefined
}

/** Records calls for a telemetry collector. A free call has no row and is traced like any other HTTP request. */
export function callTelemetry(telemetry: Telemetry): CallFeature<Traced> {
  return {
    begin: ({ request, session }) =>
      request.charging === 'free'
        ? undefined
        : { sessionName: session?.name, gaps: request.stream ? new ChunkGaps() : undefined },
    attempted({ gaps }, call) {
      if (!gaps) return undefined
      gaps.begin()
      return { received: () => gaps.note(call.firstByteAt) }
    },
    settled({ sessionName, gaps }, call, end) {
      call.incoming.isTraced = true
      telemetry.call(tracedCall(call, end, { sessionName, chunkGapsMs: gaps?.ms ?? [] }))
    },
    repeated: (request, incoming) => ({
      settled(repeat) {
        incoming.isTraced = true
        telemetry.call(tracedHit(request, incoming, repeat))
      },
    }),
  }
}
