import type { Channel } from '../../../domain/channel.ts'
import type { Settings } from '../../../domain/settings.ts'
import { GatewayError } from '../../../errors.ts'
import type { ScannedObject } from '../../../protocols/json/scanned-object.ts'
import {
  encryptedInput,
  gateResponsesRequest,
  promptText,
  readResponsesRequest,
  type ResponsesRequest,
  ResponsesTap,
  usageOfResponse,
} from '../../../protocols/responses/index.ts'
import { channelsToContinue, type Continued, findContinued } from '../../state/continued.ts'
import { keptRequest } from '../../state/kept-response.ts'
import { type NativeParts, NativeResponse } from '../../state/native-response.ts'
import { NativeTap } from '../../state/native-tap.ts'
import type { Conversions } from '../conversions.ts'
import type { ChannelRequest, Dialect, RelayedRequest } from '../dialect.ts'
import { requestsFor } from '../requests-for.ts'
import { convertedResponses } from './converted-responses.ts'

/** The account that a request belongs to. */
interface Origin {
  readonly channel: string
  readonly keyTag: string
}

/** Earlier responses that a request refers to. */
interface Referred {
  readonly continued?: Continued | undefined
  /** The account that made the encrypted reasoning in its input. */
  readonly reasoning?: Origin | undefined
}

/** Settings that a kept response repeats. */
const KEPT = new Map([['store', 'true']])

/** Responses: bytes to channels that speak them, converted to others. */
export function responsesDialect(conversions: Conversions, parts: NativeParts): Dialect {
  const { responses } = parts
  return {
    name: 'responses',
    promptText,
    read(scan, _headers, { caller, settings }) {
      const request = readResponsesRequest(scan)
      const id = request.previousResponseId
      if (id !== undefined)
        return findContinued(scan, id, caller, settings, responses).then((continued) =>
          relayed(request, scan, { continued }, settings),
        )
      const encrypted = hasSeveralAccounts(settings) ? encryptedInput(scan) : []
      if (encrypted.length === 0) return relayed(request, scan, {}, settings)
      return responses
        .originOf(caller.user.id, encrypted)
        .then((reasoning) => relayed(request, scan, { reasoning }, settings))
    },
  }

  function relayed(
    own: ResponsesRequest,
    ownScan: ScannedObject,
    { continued, reasoning }: Referred,
    { options }: Settings,
  ): RelayedRequest {
    const kept = continued?.kind === 'kept' ? continued : undefined
    const previous = continued?.kind === 'native' ? continued.response : undefined
    const scan = kept?.scan ?? ownScan
    const request = kept ? readResponsesRequest(scan) : own
    const origin = continued?.response ?? reasoning
    const isKept = options.keepResponsesMs > 0 && request.store !== false
    const native = (channel: Channel): ChannelRequest => ({
      channel,
      outputMaximum: request.maxTokens,
      choices: 1,
      ...(origin?.channel === channel.name && {
        isOfKey: ({ value }) => responses.keyTag(value) === origin.keyTag,
      }),
      prepare(passThrough) {
        const isStored = request.store !== false && !channel.disableStore
        const response = new NativeResponse(parts, { isStored, isBackground: request.background, previous })
        const replace = new Map(previous && [['previous_response_id', JSON.stringify(previous.upstreamId)]])
        const { body, upstreamModel } = gateResponsesRequest(scan, request, channel, { passThrough, replace })
        return {
          protocol: 'responses',
          path: convertedResponses.path,
          headers: [],
          body,
          upstreamModel,
          dropped: [],
          errorBody: (bytes) => response.ids.inProse(bytes),
          tap: () => new NativeTap(new ResponsesTap(), response),
          reply: (bytes) => response.reply(bytes, usageOfResponse(bytes)),
        }
      },
    })
    return {
      ...request,
      ...(previous && { contextTokens: previous.tokens }),
      ...(kept && { body: scan.bytes }),
      channelsFor(channels) {
        const able = continued ? channelsToContinue(continued, channels) : channels
        if (request.background) return ableToGoOn(able)
        return reasoning ? ofOrigin(able, reasoning) : able
      },
      forChannels: (channels, model) =>
        requestsFor('responses', request.model, channels, model, native, () => {
          const repeats = isKept ? KEPT : undefined
          const convert = conversions.decode('responses', scan, request.maxTokens, repeats)
          if (!isKept) return convert
          const keeping = {
            responses,
            scan: ownScan,
            previousId: kept?.response.id ?? null,
            retentionMs: options.keepResponsesMs,
          }
          return (...to) => keptRequest(convert(...to), keeping)
        }),
    }
  }
}

// With one account there is no other to mistake it for.
function hasSeveralAccounts({ channels }: Settings): boolean {
  const native = channels.filter(({ protocols }) => protocols.includes('responses'))
  return native.length > 1 || native.some(({ keys }) => keys.length > 1)
}

// Others would refuse the reasoning. If that channel is gone, another may be of the same account.
function ofOrigin(channels: readonly Channel[], { channel }: Origin): readonly Channel[] {
  const own = channels.filter(({ name, protocols }) => name === channel && protocols.includes('responses'))
  return own.length > 0 ? own : channels
}

// A response that goes on without its client must be stored by its upstream.
function ableToGoOn(channels: readonly Channel[]): readonly Channel[] {
  const able = channels.filter(
    ({ protocols, disableStore }) => protocols.includes('responses') && !disableStore,
  )
  if (able.length > 0) return able
  throw new GatewayError(
    'invalid_request',
    `Invalid 'background': expected false, got true: no channel of this model stores responses itself.`,
  )
}
