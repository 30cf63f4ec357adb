import type { Channel, ProtocolName } from '../../domain/channel.ts'
import type { Model } from '../../domain/settings.ts'
import type { ChannelRequest } from './dialect.ts'
import type { RequestFor } from './conversions.ts'
import { spokenDialect } from './spoken-dialect.ts'

/**
 * A client's request for the model `name` to each channel: `native` for those that speak its dialect, a
 * converted one for the others. `decode` is called once, and only where there are others.
 */
export function requestsFor(
  dialect: ProtocolName,
  name: string,
  channels: readonly Channel[],
  model: Model,
  native: (channel: Channel) => ChannelRequest,
  decode: () => RequestFor,
): ChannelRequest[] {
  let converted: RequestFor | undefined
  return channels.map((channel) => {
    const spoken = spokenDialect(channel, dialect, name)
    return spoken === dialect ? native(channel) : (converted ??= decode())(channel, spoken, model)
  })
}
