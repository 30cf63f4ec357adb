import type { Channel } from '../../../domain/channel.ts'
import type { Settings } from '../../../domain/settings.ts'
import { GatewayError } from '../../../errors.ts'
import type { ScannedObject } from '../../../protocols/json/scanned-object.ts'
import {
  gateResponsesRequest,
  itemReferences,
  promptText,
  readResponsesRequest,
  type ResponsesRequest,
  ResponsesTap,
  usageOfResponse,
} from '../../../protocols/responses/index.ts'
import { channelsToContinue, type Continued, findContinued } from '../../state/continued.ts'
import { withKeptItems } from '../../state/kept-items.ts'
import { keptRequest } from '../../state/kept-response.ts'
import { type NativeParts, NativeResponse } from '../../state/native-response.ts'
import { NativeTap } from '../../state/native-tap.ts'
import { channelsOfOrigin, findOrigin, type Origin } from '../../state/reasoning-origin.ts'
import type { Conversions } from '../conversions.ts'
import type { ChannelRequest, Dialect, Reader, RelayedRequest } from '../dialect.ts'
import { requestsFor } from '../requests-for.ts'
import { convertedResponses } from './converted-responses.ts'

/** Earlier responses that a request refers to. */
interface Referred {
  readonly continued?: Continued | undefined
  /** The account that made the encrypted reasoning in its input. */
  readonly reasoning?: Origin | undefined
  /** The request for channels of other dialects: with all that the gateway keeps of what it refers to. */
  readonly composed?: ScannedObject | undefined
}

/** Settings that a kept response repeats. */
const KEPT = new Map([['store', 'true']])

/** Responses: bytes to channels that speak them, converted to others. */
export function responsesDialect(conversions: Conversions, parts: NativeParts): Dialect {
  const { responses } = parts
  return {
    name: 'responses',
    endpoint: 'responses',
    promptText,
    read(scan, _headers, reader) {
      const { settings } = reader
      const request = readResponsesRequest(scan)
      const isContinuing = request.previousResponseId !== undefined
      // A continued response tells the account by itself.
      const found = isContinuing ? undefined : findOrigin(scan, reader, responses)
      if (!isContinuing && !found && itemReferences(scan).length === 0)
        return relayed(request, scan, {}, settings)
      return referredBy(request, scan, found, reader).then((referred) =>
        relayed(request, scan, referred, settings),
      )
    },
  }

  async function referredBy(
    { previousResponseId: id }: ResponsesRequest,
    scan: ScannedObject,
    found: Promise<Origin | undefined> | undefined,
    reader: Reader,
  ): Promise<Referred> {
    const continued = id === undefined ? undefined : await findContinued(scan, id, reader, responses)
    const reasoning = await found
    if (continued?.kind === 'native') return { continued, reasoning }
    const conversation = continued?.scan ?? scan
    const composed = await withKeptItems(conversation, reader, responses)
    return { continued, reasoning, composed: composed === scan ? undefined : composed }
  }

  function relayed(
    own: ResponsesRequest,
    ownScan: ScannedObject,
    { continued, reasoning, composed }: Referred,
    { options }: Settings,
  ): RelayedRequest {
    const kept = continued?.kind === 'kept' ? continued : undefined
    const previous = continued?.kind === 'native' ? continued.response : undefined
    const scan = composed ?? ownScan
    const request = composed ? readResponsesRequest(scan) : own
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
        const { body, upstreamModel } = gateResponsesRequest(ownScan, own, channel, { passThrough, replace })
        return {
          protocol: 'responses',
          path: convertedResponses.path(upstreamModel, own.stream),
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
      ...(composed && { body: scan.bytes }),
      channelsFor(channels) {
        const able = continued ? channelsToContinue(continued, channels) : channels
        const ready = request.background ? ableToGoOn(able) : able
        return reasoning ? channelsOfOrigin(ready, reasoning) : ready
      },
      forChannels: (channels, model) =>
        requestsFor('responses', request.model, channels, model, native, () => {
          const repeats = isKept ? KEPT : undefined
          const convert = conversions.decode('responses', scan, { maxTokens: request.maxTokens, repeats })
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
