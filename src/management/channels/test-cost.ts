import type { AdministrationServices } from '../services.ts'
import type { ChannelObject } from './channel-object.ts'
import { isCostlyEndpoint, testedModel } from './test-request.ts'

/**
 * Whether the test of a channel generates an image or speech, for which the provider charges. False if the
 * channel cannot be tested.
 */
export function isTestCostly(
  { liveConfig, settings }: Pick<AdministrationServices, 'liveConfig' | 'settings'>,
  { name, test_model: preferred }: ChannelObject,
): boolean {
  const channel =
    liveConfig.storedChannel(name) ?? liveConfig.declared.channels.find((declared) => declared.name === name)
  const wanted = typeof preferred === 'string' ? preferred : ''
  return channel !== undefined && isCostlyEndpoint(testedModel(channel, wanted, settings().models).endpoint)
}
