import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { ProviderTools } from '@sluice/wire/tool-use'
import type { ChannelPlan } from '../request-stages.ts'

/** The provider's tools in a native request to a channel, for the model `name`; empty if there are none. */
export function nativeTools(
  { model_mapping }: Channel,
  dialect: ProtocolName,
  name: string,
  offered: ProviderTools | undefined,
): Pick<ChannelPlan, 'tools'> {
  return offered ? { tools: { ...offered, dialect, model: model_mapping.get(name) ?? name } } : {}
}
