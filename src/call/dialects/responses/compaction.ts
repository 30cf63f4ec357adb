import type { Channel } from '../../../domain/records/channel.ts'
import { GatewayError } from '../../../errors.ts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  adaptResponsesRequest,
  readCompactionRequest,
  RESPONSES_PROMPT_RULES,
  RESPONSES_REQUEST,
  responsesFieldNames,
  type ResponsesRequest,
  usageOfCompaction,
} from '@sluice/wire/responses'
import type { Dialect, RequestReaderContext } from '../dialect.ts'
import { throwNoStreams } from '../answer-reader.ts'
import type { ReferableAnswer, ResolvedReferences } from '../references.ts'
import type { ChannelPlan, ParsedRequest } from '../../request-stages.ts'

/**
 * Dialect of `POST /v1/responses/compact`. Requests are passed through to channels that speak responses. The
 * upstream's reply has the form of a response.
 */
export const compactionDialect: Dialect = {
  name: 'responses',
  endpoint: 'responses',
  names: responsesFieldNames,
  shape: RESPONSES_REQUEST,
  mayBeUnserved: true,
  hasNoFallbacks: true,
  async read(scan, _headers, reader) {
    const request = readCompactionRequest(scan)
    const { previousResponseId: previousId } = request
    const referring = { scan, previousId, isCompaction: true, isStored: false, isBackground: false }
    return compacted(request, scan, await reader.features.refer(referring, reader), reader)
  },
}

function compacted(
  own: ResponsesRequest,
  scan: ScannedObject,
  referred: ResolvedReferences,
  reader: RequestReaderContext,
): ParsedRequest {
  const { composed } = referred
  const request = composed ? { ...readCompactionRequest(composed), model: own.model } : own
  const size = referred.promptSize(reader.settings.models.get(request.model).contextTokens)
  const native = (channel: Channel): ChannelPlan => ({
    channel,
    outputMaximum: undefined,
    choices: 1,
    ...referred.accountAt(channel),
    prepare(passThrough) {
      const { replace, dropped } = referred
      const gated = adaptResponsesRequest(scan, own, channel, { passThrough, replace })
      return {
        protocol: 'responses',
        path: '/responses/compact',
        headers: [],
        ...gated,
        prompt: RESPONSES_PROMPT_RULES,
        dropped: [...dropped, ...gated.dropped],
        ...(referred.answerFrom(channel) ?? AS_IT_COMES),
      }
    },
  })
  return {
    ...request,
    // As with responses, another model cannot read what a provider keeps.
    ...(!referred.continues && {
      forModel: (model) => compacted({ ...own, model }, scan, referred, reader),
    }),
    requested: { leavesTierOpen: true },
    namesPrompt: request.namesPrompt || size.hasUnknown,
    responses: { isBackground: false, contextTokens: size.tokens, composed: composed?.bytes },
    channelsFor(channels) {
      if (referred.continues === 'at provider') return referred.channelsFor(channels)
      const speaking = channels.filter(({ protocol: protocols }) => protocols.includes('responses'))
      if (speaking.length === 0) throw notCompacted()
      return referred.channelsFor(speaking)
    },
    forChannels: (channels) => channels.map(native),
  }
}

/** Reads compacted conversations to which no later request can refer. */
const AS_IT_COMES: Omit<ReferableAnswer, 'errorBody'> = {
  tap: throwNoStreams,
  reply: (bytes) => ({ facts: usageOfCompaction(bytes), body: () => bytes }),
}

function notCompacted(): GatewayError {
  return new GatewayError(
    'not_found',
    'no channel of this model speaks responses, which alone can compact a conversation; the model serves /v1/chat/completions, /v1/messages and /v1/responses',
  )
}
