import type { Channel } from '../../../domain/records/channel.ts'
import { GatewayError } from '../../../errors.ts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  adaptResponsesRequest,
  readCompactionRequest,
  IdReplacer,
  RESPONSES_PROMPT_RULES,
  RESPONSES_REQUEST,
  responsesFieldNames,
  type ResponsesRequest,
  usageOfCompaction,
} from '@sluice/wire/responses'
import { channelsToContinue } from '../../responses/resolve-previous-response.ts'
import { channelsOfReasoningAccount } from '../../responses/reasoning-origin.ts'
import {
  findReferences,
  toProviderRequest,
  sizeOfReferredPrompt,
  type ResponseReferences,
} from '../../responses/item-references.ts'
import { newResponseId } from '../../response-id.ts'
import type { ResponseStore } from '../../responses/response-store.ts'
import { type Dialect, type RequestReaderContext, throwNoStreams } from '../dialect.ts'
import type { ChannelPlan, ParsedRequest } from '../../request-stages.ts'

/**
 * Dialect of `POST /v1/responses/compact`. Requests are passed through to channels that speak responses. The
 * upstream's reply has the form of a response.
 */
export function compactionDialect(responses: ResponseStore): Dialect {
  return {
    name: 'responses',
    endpoint: 'responses',
    names: responsesFieldNames,
    shape: RESPONSES_REQUEST,
    async read(scan, _headers, reader) {
      const request = readCompactionRequest(scan)
      const referred = await findReferences(scan, request.previousResponseId, reader, responses)
      return compacted(request, scan, referred, reader)
    },
  }

  function compacted(
    own: ResponsesRequest,
    scan: ScannedObject,
    referred: ResponseReferences,
    { settings }: RequestReaderContext,
  ): ParsedRequest {
    const { continued, account, composed } = referred
    const request = composed ? readCompactionRequest(composed) : own
    const previous = continued?.response
    const origin = previous ?? account
    const native = (channel: Channel): ChannelPlan => ({
      channel,
      outputMaximum: undefined,
      choices: 1,
      ...(origin?.channel === channel.name && {
        isOfKey: ({ value }) => responses.keyTag(value) === origin.keyTag,
      }),
      prepare(passThrough) {
        const { replace, dropped } = toProviderRequest(scan, referred)
        const gated = adaptResponsesRequest(scan, own, channel, { passThrough, replace })
        const ids = new IdReplacer()
        if (previous) ids.add(previous.upstreamId, previous.id)
        return {
          protocol: 'responses',
          path: '/responses/compact',
          headers: [],
          ...gated,
          prompt: RESPONSES_PROMPT_RULES,
          dropped: [...dropped, ...gated.dropped],
          errorBody: (bytes) => ids.inProse(bytes),
          tap: throwNoStreams,
          reply(bytes) {
            const facts = usageOfCompaction(bytes)
            ids.add(facts.id, newResponseId(facts.id.length))
            return {
              facts,
              body: () => ids.whole(bytes),
              // Only the provider account that compacted a conversation can read the result.
              provenance: ({ key }, call) =>
                responses.provenance(call.hold.account.user.id, key.value, null, facts.encrypted),
            }
          },
        }
      },
    })
    return {
      ...request,
      ...sizeOfReferredPrompt(request, referred, settings.models.get(request.model).contextTokens),
      ...(composed && { body: composed.bytes }),
      mayBeUnserved: true,
      channelsFor(channels) {
        if (continued?.kind === 'native') return channelsToContinue(continued, channels)
        const speaking = channels.filter(({ protocol: protocols }) => protocols.includes('responses'))
        if (speaking.length === 0) throw notCompacted()
        if (continued) return channelsToContinue(continued, speaking)
        return account ? channelsOfReasoningAccount(speaking, account) : speaking
      },
      forChannels: (channels) => channels.map(native),
    }
  }
}

function notCompacted(): GatewayError {
  return new GatewayError(
    'not_found',
    'no channel of this model speaks responses, which alone can compact a conversation; the model serves /v1/chat/completions, /v1/messages and /v1/responses',
  )
}
