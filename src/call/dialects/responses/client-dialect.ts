import { responsesStorageRules } from '../answer-storage-rules.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  RESPONSES_COMPARISON_RULES,
  adaptResponsesRequest,
  readResponsesRequest,
  responsesFieldNames,
  type ResponsesRequest,
  ResponsesTap,
  usageOfResponse,
  RESPONSES_REQUEST,
} from '@sluice/wire/responses'
import type { Conversions } from '../conversions.ts'
import type { Dialect, RequestReaderContext } from '../dialect.ts'
import { ANY_MEDIA, nativeConversation, nativeRequest, nativeTools, planChannels } from '../plan-channels.ts'
import { withRepair } from '../repair-answers.ts'
import type { ReferableAnswer, ResolvedReferences } from '../references.ts'
import { responsesConversion } from '../conversion-dialects.ts'
import { sessionFinder } from '../../session.ts'
import type { ChannelPlan, ParsedRequest } from '../../request-stages.ts'

/** Dialect of responses. Requests are passed through to channels that speak it, and converted for others. */
export function responsesDialect(conversions: Conversions): Dialect {
  return {
    name: 'responses',
    endpoint: 'responses',
    names: responsesFieldNames,
    shape: RESPONSES_REQUEST,
    conversation: RESPONSES_COMPARISON_RULES,
    keeping: responsesStorageRules,
    async read(scan, headers, reader) {
      const request = readResponsesRequest(scan)
      const { previousResponseId: previousId, store, background: isBackground } = request
      const referring = { scan, previousId, isCompaction: false, isStored: store !== false, isBackground }
      const referred = await reader.features.refer(referring, reader)
      const { composed } = referred
      const read = relayed(request, scan, referred, reader)
      if (!referred.isKnown) return read
      // A request that continues a stored conversation does not contain its beginning, so the session is
      // found in `composed`, the request with the stored content.
      return { ...read, session: sessionFinder(headers, composed ?? scan, RESPONSES_COMPARISON_RULES, true) }
    },
  }

  function relayed(
    own: ResponsesRequest,
    ownScan: ScannedObject,
    referred: ResolvedReferences,
    reader: RequestReaderContext,
  ): ParsedRequest {
    const { composed } = referred
    const scan = composed ?? ownScan
    const request = composed ? { ...readResponsesRequest(scan), model: own.model } : own
    const { model: name, stream, maxTokens } = request
    const size = referred.promptSize(reader.settings.models.get(name).contextTokens)
    const native = (channel: Channel): ChannelPlan => ({
      channel,
      outputMaximum: request.maxTokens,
      choices: 1,
      ...nativeRequest(channel, 'responses', name, ownScan),
      ...(!composed && nativeConversation(channel, responsesConversion, name, scan)),
      ...nativeTools(channel, 'responses', name, request.providerTools),
      ...referred.accountAt(channel),
      prepare(passThrough) {
        const { replace, dropped } = referred
        const gated = adaptResponsesRequest(ownScan, own, channel, { passThrough, replace, statesTier: true })
        return withRepair(channel, responsesConversion, {
          protocol: 'responses',
          path: responsesConversion.path(gated.upstreamModel, own.stream),
          headers: [],
          ...gated,
          prompt: responsesConversion.prompt,
          dropped: [...dropped, ...gated.dropped],
          ...(referred.answerFrom(channel) ?? AS_IT_COMES),
        })
      },
    })
    return {
      ...request,
      ...(request.hasMedia && { measured: ANY_MEDIA }),
      // A response can be continued only by the model that created it.
      ...(!referred.continues && {
        forModel: (model) => relayed({ ...own, model }, ownScan, referred, reader),
      }),
      namesPrompt: request.namesPrompt || size.hasUnknown,
      responses: {
        isBackground: request.background,
        contextTokens: size.tokens,
        composed: composed?.bytes,
      },
      channelsFor: (channels) => referred.channelsFor(channels),
      forChannels: (channels, model) =>
        planChannels('responses', name, channels, model, native, (spoken) =>
          conversions.decode(responsesConversion, scan, {
            maxTokens,
            reader,
            spoken,
            target: { model: name, stream },
            keeping: referred.keeping,
          }),
        ),
    }
  }
}

/** Reads answers to which no later request can refer. */
const AS_IT_COMES: Omit<ReferableAnswer, 'errorBody'> = {
  tap: (_, memory) => new ResponsesTap(memory),
  reply: (bytes) => ({ facts: usageOfResponse(bytes), body: () => bytes }),
}
