import { responsesStorageRules } from '../answer-storage-rules.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import { GatewayError } from '../../../errors.ts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import {
  RESPONSES_COMPARISON_RULES,
  adaptResponsesRequest,
  readResponsesRequest,
  responsesFieldNames,
  type ResponsesRequest,
  usageOfResponse,
  RESPONSES_REQUEST,
} from '@sluice/wire/responses'
import { channelsToContinue } from '../../responses/resolve-previous-response.ts'
import { type NativeResponseServices, NativeResponse, NativeTap } from '../../responses/native-response.ts'
import { channelsOfReasoningAccount } from '../../responses/reasoning-origin.ts'
import {
  findReferences,
  toProviderRequest,
  sizeOfReferredPrompt,
  type ResponseReferences,
} from '../../responses/item-references.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect, RequestReaderContext } from '../dialect.ts'
import { nativeConversation, nativeRequest, nativeTools, planChannels } from '../plan-channels.ts'
import { withRepair } from '../repair-answers.ts'
import { responsesConversion } from '../conversion-dialects.ts'
import { sessionFinder } from '../../session.ts'
import type { ChannelPlan, ParsedRequest } from '../../request-stages.ts'

/** Settings that are stated in a converted response if the gateway keeps the response. */
const KEPT = new Map([['store', 'true']])

/** Dialect of responses. Requests are passed through to channels that speak it, and converted for others. */
export function responsesDialect(conversions: Conversions, services: NativeResponseServices): Dialect {
  const { responses } = services
  return {
    name: 'responses',
    endpoint: 'responses',
    names: responsesFieldNames,
    shape: RESPONSES_REQUEST,
    conversation: RESPONSES_COMPARISON_RULES,
    keeping: responsesStorageRules,
    async read(scan, headers, reader) {
      const request = readResponsesRequest(scan)
      const referred = await findReferences(scan, request.previousResponseId, reader, responses)
      const { composed } = referred
      const read = relayed(request, scan, referred, reader)
      if (!composed && !referred.continued && !referred.account) return read
      // A request that continues a stored conversation does not contain its beginning, so the session is
      // found in `composed`, the request with the stored content.
      return { ...read, session: sessionFinder(headers, composed ?? scan, RESPONSES_COMPARISON_RULES, true) }
    },
  }

  function relayed(
    own: ResponsesRequest,
    ownScan: ScannedObject,
    referred: ResponseReferences,
    reader: RequestReaderContext,
  ): ParsedRequest {
    const { options } = reader.settings
    const { continued, account, composed } = referred
    const kept = continued?.kind === 'kept' ? continued : undefined
    const previous = continued?.kind === 'native' ? continued.response : undefined
    const scan = composed ?? ownScan
    const request = composed ? { ...readResponsesRequest(scan), model: own.model } : own
    const { model: name, stream, maxTokens } = request
    const origin = continued?.response ?? account
    const isKept = options.keep_responses > 0 && request.store !== false
    const native = (channel: Channel): ChannelPlan => ({
      channel,
      outputMaximum: request.maxTokens,
      choices: 1,
      ...nativeRequest(channel, 'responses', name, ownScan),
      ...(!composed && nativeConversation(channel, responsesConversion, name, scan)),
      ...nativeTools(channel, 'responses', name, request.providerTools),
      ...(origin?.channel === channel.name && {
        isOfKey: ({ value }) => responses.keyTag(value) === origin.keyTag,
      }),
      prepare(passThrough) {
        const isStored = request.store !== false && !channel.disable_store
        const response = new NativeResponse(services, {
          isStored,
          isBackground: request.background,
          previous,
        })
        const { replace, dropped } = toProviderRequest(ownScan, referred)
        const gated = adaptResponsesRequest(ownScan, own, channel, { passThrough, replace, statesTier: true })
        return withRepair(channel, responsesConversion, {
          protocol: 'responses',
          path: responsesConversion.path(gated.upstreamModel, own.stream),
          headers: [],
          ...gated,
          prompt: responsesConversion.prompt,
          dropped: [...dropped, ...gated.dropped],
          errorBody: (bytes) => response.ids.inProse(bytes),
          tap: (_, memory) => new NativeTap(memory, response),
          reply: (bytes) => response.reply(bytes, usageOfResponse(bytes)),
        })
      },
    })
    return {
      ...request,
      ...(request.hasMedia && { measuredBounds: { hasMedia: true } }),
      // A response can be continued only by the model that created it.
      ...(!continued && { forModel: (model) => relayed({ ...own, model }, ownScan, referred, reader) }),
      ...sizeOfReferredPrompt(request, referred, reader.settings.models.get(name).contextTokens),
      ...(composed && { body: scan.bytes }),
      channelsFor(channels) {
        const able = continued ? channelsToContinue(continued, channels) : channels
        const ready = request.background ? ableToGoOn(able) : able
        return account ? channelsOfReasoningAccount(ready, account) : ready
      },
      forChannels: (channels, model) =>
        planChannels('responses', name, channels, model, native, (spoken) => {
          const keeping = isKept
            ? {
                responses,
                scan: ownScan,
                previousId: kept?.response.id ?? null,
                retentionMs: options.keep_responses,
              }
            : undefined
          return conversions.decode(responsesConversion, scan, {
            maxTokens,
            reader,
            spoken,
            repeats: isKept ? KEPT : undefined,
            target: { model: name, stream },
            keeping,
          })
        }),
    }
  }
}

// Returns the channels that can continue a response after its client has left: those that store it upstream.
// Throws if there are none.
function ableToGoOn(channels: readonly Channel[]): readonly Channel[] {
  const able = channels.filter(
    ({ protocol: protocols, disable_store }) => protocols.includes('responses') && !disable_store,
  )
  if (able.length > 0) return able
  throw new GatewayError(
    'invalid_request',
    `Invalid 'background': expected false, got true: no channel of this model stores responses itself.`,
  )
}
