import { z } from 'zod'
import type { AdministrationParts } from '../parts.ts'
import { type ChannelObject, channelSchema } from './channel-object.ts'
import { isCostly, testedModel } from './tested-model.ts'

/** A channel in responses, with whether the provider charges its test as a picture or speech. */
export const shownChannelSchema = channelSchema.extend({ test_costs: z.boolean() })

/** A channel in responses. */
export type ShownChannel = z.output<typeof shownChannelSchema>

/** Adds whether the test of a channel is costly; a channel that cannot be used has no test. */
export function shownChannel(
  { liveConfig, settings }: Pick<AdministrationParts, 'liveConfig' | 'settings'>,
  object: ChannelObject,
): ShownChannel {
  const { name, test_model: preferred } = object
  const channel =
    liveConfig.storedChannel(name) ?? liveConfig.declared.channels.find((declared) => declared.name === name)
  const wanted = typeof preferred === 'string' ? preferred : ''
  const costs = channel !== undefined && isCostly(testedModel(channel, wanted, settings().models).endpoint)
  return { ...object, test_costs: costs }
}
