import {
  type Judgement,
  requireList,
  memberOf,
  NO_MATCHES,
  ServiceFailure,
  type ServiceMaker,
} from './service.ts'

/** The path of LiteLLM's generic guardrail API. */
const PATH = '/beta/litellm_basic_guardrail_api'

/**
 * Checks texts with a service that speaks LiteLLM's generic guardrail API. Of that API's members, only the
 * content, its direction (request or response) and the call's id are sent.
 */
export const webhook: ServiceMaker<'webhook'> = ({ url, headers }) => ({
  async judge({ texts, toolCalls, images, side, callId }, { post }) {
    const body = {
      texts,
      images,
      tool_calls: toolCalls.map(({ id, name, arguments: given }) => ({
        id,
        type: 'function',
        function: { name, arguments: given },
      })),
      input_type: side,
      litellm_call_id: callId,
    }
    const request = { url: `${url}${PATH}`, headers, body: Buffer.from(JSON.stringify(body)) }
    return judgementOf(await post(request), texts)
  },
})

function judgementOf(answer: unknown, sent: readonly string[]): Judgement {
  const action = memberOf(answer, 'action')
  switch (action) {
    case 'NONE':
      return NO_MATCHES
    case 'BLOCKED':
      return { matches: 1, isBlocked: true }
    case 'GUARDRAIL_INTERVENED': {
      const given = memberOf(answer, 'texts')
      // The service intervened without returning texts, so there is nothing to send in their place.
      if (given === undefined || given === null) return { matches: 1, isBlocked: true }
      const texts = requireList(given, 'a list of texts').map((text) => {
        if (typeof text === 'string') return { text }
        throw new ServiceFailure('it answered with a text that is no string')
      })
      if (texts.length !== sent.length)
        throw new ServiceFailure(`it answered with ${texts.length} texts to ${sent.length}`)
      const changed = texts.filter(({ text }, index) => text !== sent[index]).length
      return changed === 0 ? { matches: 1, isBlocked: true } : { matches: changed, isBlocked: false, texts }
    }
    default:
      throw new ServiceFailure('it answered without a known action')
  }
}
