import { scanObject } from '@sluice/wire/json/json-scan'
import type { PromptText } from '@sluice/wire/prompt-tokens'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { Settings } from '../domain/settings.ts'
import { answerHeaders } from '../http/answer-headers.ts'
import type { Body, BodyReader } from './body-reader.ts'
import { type CountTokensEndpoint, countingDialect, CountingUnsupported } from './dialects/count-tokens.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { CallLimits } from './call-limits.ts'
import type { LifeCycle } from './life-cycle.ts'
import { bodyOptions, type EndpointDialects } from './parse-request.ts'
import { recordRefusal } from './record-refusal.ts'
import type { TokenCounter } from './token-counter.ts'

/** The services that counting needs. */
interface CountingServices {
  readonly settings: () => Settings
  readonly bodies: BodyReader
  readonly lifeCycle: Pick<LifeCycle, 'read'>
  readonly count: Pick<TokenCounter, 'countLowPriority'>
  readonly limits: Pick<CallLimits, 'countModel'>
}

/** Relays a request that was read, in a dialect of its endpoint. */
type RelayBody = (
  dialects: EndpointDialects,
  body: Body,
  incoming: IncomingCall,
  caller: Caller,
  settings: Settings,
) => Promise<void>

/**
 * Responds with the number of tokens that a request would have: that of a channel, to which `relay` sends it, or that of
 * the gateway's tokenizer, if no channel counts. Rejects with the error for the client.
 */
export async function countTokens(
  counting: CountTokensEndpoint,
  incoming: IncomingCall,
  caller: Caller,
  services: CountingServices,
  relay: RelayBody,
): Promise<void> {
  const settings = services.settings()
  const dialects = { json: countingDialect(counting) }
  const body = await services.bodies.read(incoming, bodyOptions(caller, settings))
  const countOnce = async (call: IncomingCall): Promise<void> => {
    try {
      await relay(dialects, body, call, caller, settings)
    } catch (error) {
      if (!(error instanceof CountingUnsupported)) throw error
      // The call itself has not failed: only counting at the upstream was refused.
      call.hasFailed = false
      const { text, extraTokens } = textToCount(counting, body, error)
      await services.limits.countModel(call, settings.models.get(call.record.model ?? ''))
      const tokens = (await services.count.countLowPriority(text)) + extraTokens
      call.response
        .writeHead(200, { 'content-type': 'application/json', ...answerHeaders(call.id, counting.protocol) })
        .end(JSON.stringify(counting.response(tokens)))
    }
  }
  try {
    const answer = services.lifeCycle.read(incoming, settings)
    await (answer ? answer({ body, incoming, caller, settings }, countOnce) : countOnce(incoming))
  } catch (error) {
    recordRefusal(incoming, caller, { dialects, body }, error)
    throw error
  } finally {
    body.release()
  }
}

function textToCount(
  counting: CountTokensEndpoint,
  { bytes }: Body,
  { composed, wasAsked, cause }: CountingUnsupported,
): PromptText {
  try {
    return counting.countable(composed ?? scanObject(bytes), composed !== undefined, !wasAsked)
  } catch (error) {
    throw cause ?? error
  }
}
