import { passesGoogleThinking } from '@sluice/wire/edit-request'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { ProtocolName, ServedProtocol } from '@sluice/wire/protocols'
import type { ProviderTools } from '@sluice/wire/tool-use'
import type { Channel } from '../../domain/records/channel.ts'
import type { Model } from '../../domain/records/model.ts'
import type { ChannelPlan, MeasuredRequest } from '../request-stages.ts'
import { dialectForChannel } from './choose-dialect.ts'
import type { UpstreamDialect } from './conversion-dialects.ts'
import type { ConversionPlanner } from './conversions.ts'

/**
 * Creates the requests for the model `name` to each channel: by `native` for channels that speak the client's
 * dialect, converted for the others; without `native`, all are converted. `decode` is called once, with the dialects to which the request is
 * converted, and only if there are any. The channel that signed the latest turn comes first among those of
 * its priority.
 */
export function planChannels(
  dialect: ServedProtocol,
  name: string,
  channels: readonly Channel[],
  model: Model,
  native: ((channel: Channel) => ChannelPlan) | undefined,
  decode: (spoken: ReadonlySet<ProtocolName>) => Promise<ConversionPlanner>,
): readonly ChannelPlan[] | Promise<readonly ChannelPlan[]> {
  if (native && channels.every((channel) => dialectForChannel(channel, dialect, name) === dialect))
    return channels.map(native)
  const spoken = new Map(channels.map((channel) => [channel, dialectForChannel(channel, dialect, name)]))
  const others = new Set([...spoken.values()].filter((one) => !native || one !== dialect))
  return decode(others).then((converted) =>
    withOriginFirst(channels, spoken, dialect, converted.origin).flatMap((channel) => {
      const one = spoken.get(channel) ?? dialect
      return native && one === dialect ? [native(channel)] : converted(channel, one, model)
    }),
  )
}

/**
 * Moves the channel `origin`, which signed the latest turn, before the converted channels of its priority,
 * because these cannot read its signatures.
 */
function withOriginFirst(
  channels: readonly Channel[],
  spoken: ReadonlyMap<Channel, ProtocolName>,
  dialect: ProtocolName,
  origin: string | undefined,
): readonly Channel[] {
  const from = channels.findIndex(({ name }) => name === origin)
  const own = channels[from]
  if (!own) return channels
  const to = channels.findIndex(
    (channel) => channel.priority === own.priority && spoken.get(channel) !== dialect,
  )
  return to < 0 || to >= from ? channels : channels.toSpliced(from, 1).toSpliced(to, 0, own)
}

/** The members of a native (not converted) request to a channel, for the model `name`. */
export function nativeRequest(
  channel: Channel,
  dialect: ProtocolName,
  name: string,
  scan: ScannedObject,
): Pick<ChannelPlan, 'sent'> {
  return {
    sent: {
      dialect,
      model: channel.model_mapping.get(name) ?? name,
      value: (member) => scan.value(member),
      names: () => scan.members.keys(),
      isObject: (member) => scan.kind(member) === 'object',
      ...(scan.members.has('extra_body') && !passesGoogleThinking(channel) && { filtered: 'extra_body' }),
    },
  }
}

/**
 * The provider's tools in a native (not converted) request to a channel, for the model `name`; empty if there
 * are none.
 */
export function nativeTools(
  { model_mapping }: Channel,
  dialect: ProtocolName,
  name: string,
  offered: ProviderTools | undefined,
): Pick<ChannelPlan, 'tools'> {
  return offered ? { tools: { ...offered, dialect, model: model_mapping.get(name) ?? name } } : {}
}

/** The conversation of a native (not converted) request to a channel, for the model `name`. */
export function nativeConversation(
  { model_mapping }: Channel,
  { name: dialect, conversation: form }: Pick<UpstreamDialect, 'name' | 'conversation'>,
  name: string,
  scan: ScannedObject,
  headers: readonly string[] = NO_HEADERS,
): Pick<ChannelPlan, 'conversation'> {
  const upstreamModel = model_mapping.get(name) ?? name
  return { conversation: () => ({ dialect, scan, form, upstreamModel, headers }) }
}

/** What is charged for a request whose prompt or answer may contain images or audio. */
export const ANY_MEDIA: MeasuredRequest = { bounds: { hasMedia: true } }

const NO_HEADERS: readonly string[] = []
