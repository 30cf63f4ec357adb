import type { Channel, ProtocolName } from '../../domain/channel.ts'
import type { Model } from '../../domain/settings.ts'
import type { ChannelRequest } from './dialect.ts'

/**
 * A client's request for each channel: `native` for those that speak its dialect, a converted one for the
 * others. `decode` is called once, and only where there are others.
 */
export function requestsFor(
  dialect: ProtocolName,
  channels: readonly Channel[],
  model: Model,
  native: (channel: Channel) => ChannelRequest,
  decode: () => (channel: Channel, model: Model) => ChannelRequest,
): ChannelRequest[] {
  const isNative = ({ protocol }: Channel): boolean => protocol === dialect
  if (channels.every(isNative)) return channels.map(native)
  const converted = decode()
  return channels.map((channel) => (isNative(channel) ? native(channel) : converted(channel, model)))
}
