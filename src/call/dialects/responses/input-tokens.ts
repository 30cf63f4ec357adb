import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  textToCount,
  countedModel,
  IdReplacer,
  RESPONSES_REQUEST,
  responsesFieldNames,
} from '@sluice/wire/responses'
import { channelsToContinue } from '../../responses/resolve-previous-response.ts'
import { channelsOfReasoningAccount } from '../../responses/reasoning-origin.ts'
import {
  findReferences,
  toProviderRequest,
  type ResponseReferences,
} from '../../responses/item-references.ts'
import type { ResponseStore } from '../../responses/response-store.ts'
import type { CountingContext, CountTokensEndpoint } from '../count-tokens.ts'

/** The endpoint `POST /v1/responses/input_tokens`, which counts the tokens of a request. */
export function responsesCountTokens(responses: ResponseStore): CountTokensEndpoint {
  return {
    protocol: 'responses',
    names: responsesFieldNames,
    shape: RESPONSES_REQUEST,
    path: () => '/responses/input_tokens',
    model: countedModel,
    upstreamHeaders: () => [],
    async contextOf(scan, reader) {
      const id = scan.value('previous_response_id')
      const previousId = typeof id === 'string' ? id : undefined
      return countedIn(scan, await findReferences(scan, previousId, reader, responses))
    },
    countable: textToCount,
    countedIn: 'input_tokens',
    response: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  }

  function countedIn(scan: ScannedObject, referred: ResponseReferences): CountingContext {
    const { continued, account, composed } = referred
    const ids = new IdReplacer()
    if (continued?.kind === 'native') ids.add(continued.response.upstreamId, continued.response.id)
    const origin = continued?.response ?? account
    return {
      composed,
      ...toProviderRequest(scan, referred),
      channelsFor(channels) {
        if (continued) return channelsToContinue(continued, channels)
        return account ? channelsOfReasoningAccount(channels, account) : channels
      },
      isOfKey: ({ value }, { name }) => name !== origin?.channel || responses.keyTag(value) === origin.keyTag,
      errorBody: (bytes) => ids.inProse(bytes),
    }
  }
}
