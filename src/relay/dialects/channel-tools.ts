import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '../../domain/protocols.ts'
import type { ProviderTools } from '../../domain/tool-use.ts'
import type { ChannelPlan } from './dialect.ts'

/** The provider's tools in a native request to a channel, for the model `name`; empty if there are none. */
export function nativeTools(
  { model_mapping }: Channel,
  dialect: ProtocolName,
  name: string,
  offered: ProviderTools | undefined,
): Pick<ChannelPlan, 'tools'> {
  return offered ? { tools: { ...offered, dialect, model: model_mapping.get(name) ?? name } } : {}
}
