import { countableText, countedModel, RenamedIds } from '../../../protocols/responses/index.ts'
import { channelsToContinue, findContinued } from '../../state/continued.ts'
import { channelsOfOrigin, findOrigin, type Origin } from '../../state/reasoning-origin.ts'
import type { ResponseStore } from '../../state/response-store.ts'
import type { CountedContext, Counting } from '../counting.ts'

/** `POST /v1/responses/input_tokens`. */
export function responsesCounting(responses: ResponseStore): Counting {
  return {
    protocol: 'responses',
    path: () => '/responses/input_tokens',
    model: countedModel,
    upstreamHeaders: () => [],
    contextOf(scan, reader) {
      const id = scan.value('previous_response_id')
      if (typeof id !== 'string')
        return findOrigin(scan, reader, responses)?.then((origin) => origin && reasoned(origin))
      return findContinued(scan, id, reader, responses).then((continued): CountedContext => {
        const { kind, response } = continued
        const ids = new RenamedIds()
        if (kind === 'native') ids.add(response.upstreamId, response.id)
        return {
          composed: kind === 'kept' ? continued.scan : undefined,
          replace: new Map([['previous_response_id', JSON.stringify(response.upstreamId)]]),
          channelsFor: (channels) => channelsToContinue(continued, channels),
          isOfKey: ({ value }) => responses.keyTag(value) === response.keyTag,
          errorBody: (bytes) => ids.inProse(bytes),
        }
      })
    },
    countable: countableText,
    countedIn: 'input_tokens',
    response: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  }

  /** A request with encrypted reasoning, which only its account can read. */
  function reasoned(origin: Origin): CountedContext {
    return {
      composed: undefined,
      replace: new Map(),
      channelsFor: (channels) => channelsOfOrigin(channels, origin),
      isOfKey: ({ value }, { name }) => name !== origin.channel || responses.keyTag(value) === origin.keyTag,
      errorBody: (body) => body,
    }
  }
}
