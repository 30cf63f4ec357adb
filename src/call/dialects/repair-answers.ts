import { repairWhole, StreamRepair } from '@sluice/wire/repair'
import type { Channel } from '../../domain/records/channel.ts'
import type { AttemptRequest } from '../request-stages.ts'
import type { ConversionDialect } from './conversion-dialects.ts'
import { replyIdentity } from './conversions.ts'
import type { Tap } from './answer-reader.ts'

const NO_BYTES = Buffer.alloc(0)

/**
 * Lets the answers of a channel that speaks the client's dialect go through the codec of the dialect, if the channel has
 * `repair`; `docs/configuration.md: Repair`. The request stays as it is. `choices`: the number of choices requested.
 */
export function withRepair(
  { repair }: Channel,
  { codec, name }: Pick<ConversionDialect, 'codec' | 'name'>,
  request: AttemptRequest,
  choices = 1,
): AttemptRequest {
  if (!repair) return request
  return {
    ...request,
    tap: (promptTokens, memory) => {
      const identity = replyIdentity(name)
      const stream = new StreamRepair({ codec, protocol: name, choices, identity, memory })
      return repairing(request.tap(promptTokens, memory), stream)
    },
    reply: (bytes) => request.reply(repairWhole({ codec, name }, bytes, replyIdentity(name), choices).bytes),
  }
}

/** Lets a tap read the repaired bytes of a stream. */
function repairing(tap: Tap, stream: StreamRepair): Tap {
  const [push, end, finalBytes, failureFrame, release] = [
    tap.push.bind(tap),
    tap.end.bind(tap),
    tap.finalBytes.bind(tap),
    tap.failureFrame.bind(tap),
    tap.release.bind(tap),
  ]
  /** What the end of the upstream's stream was repaired to, to be sent before the last frames. */
  let last: Buffer = NO_BYTES
  const takeLastTexts = tap.takeLastTexts?.bind(tap)
  return Object.assign(tap, {
    push: (chunk: Buffer) => push(stream.push(chunk)),
    end() {
      last = push(stream.end()).forward ?? last
      return end()
    },
    takeLastTexts(isCut: boolean) {
      if (isCut) return takeLastTexts?.(isCut) ?? NO_BYTES
      const taken = Buffer.concat([last, takeLastTexts?.(isCut) ?? NO_BYTES])
      last = NO_BYTES
      return taken
    },
    finalBytes: (...charged: Parameters<Tap['finalBytes']>) => Buffer.concat([last, finalBytes(...charged)]),
    failureFrame: (...error: Parameters<Tap['failureFrame']>) =>
      Buffer.concat([last, failureFrame(...error)]),
    release() {
      stream.release()
      release()
    },
  })
}
