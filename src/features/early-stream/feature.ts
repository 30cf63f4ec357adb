import { UpstreamRefusal } from '../../call/failure.ts'
import type { CallFeature } from '../../call/feature.ts'
import { TOO_LONG_CODE } from '../../call/refused-requests.ts'
import { type EarlyStream, EarlyStreams, mayBeginEarly } from './early-stream.ts'

/** Keeps clients of silent streams waiting: `docs/operations.md: Silent streams`. */
export function earlyStreams(): CallFeature<EarlyStream> {
  const streams = new EarlyStreams()
  return {
    concerns: ({ options }, endpoint) =>
      mayBeginEarly(endpoint) && (options.early_stream > 0 || endpoint === 'responses'),
    begin: (call) =>
      call.settings.options.early_stream > 0 || call.incoming.request.headers.originator !== undefined
        ? streams.begin(call)
        : undefined,
    admitted: (early, call) => early.watch(call),
    attempted: (early) => early.dispatched(),
    relaying: (early, _, nowMs, stream) => early.keepOpen(nowMs, stream),
    /**
     * Sends the head of a stream if the client understands only as an event of it that its request is too long. Codex
     * shortens a conversation after `response.failed` with `context_length_exceeded` (codex-rs/codex-api/src/sse/responses.rs
     * of openai/codex), and takes any 400 for a mistake of the user (src/api_bridge.rs beside it). It and the programs that
     * contain it state who they are in `originator`.
     */
    failed(early, { plan, incoming }, error) {
      const isTooLong = error instanceof UpstreamRefusal && error.facts.code === TOO_LONG_CODE
      const isCodex =
        plan.dialect.endpoint === 'responses' && incoming.request.headers.originator !== undefined
      if (isTooLong && isCodex) early.beginNow()
    },
    closed: (early) => early.end(),
    close: () => streams.close(),
  }
}
