import { z } from 'zod'
import type { Channel, ChannelDefinition } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import type { Actor } from '../authority.ts'
import type { AdministrationParts } from '../parts.ts'
import { changedChannel } from './changed-channel.ts'
import { someChannelFields } from './channel-fields.ts'
import { CHANNEL_ID, editableChannel } from './find-channel.ts'
import { newChannel, unstored } from './new-channel.ts'

/** The name of every draft, because its own may be missing, or be that of the channel that it changes. */
const NAME = 'unsaved channel'

/** The fields of a channel that is not saved; with an `id`, changes to the stored channel. */
export const draftField = someChannelFields.extend({ id: CHANNEL_ID.id.nullish() })

/** A channel that is not saved. */
export interface Draft {
  readonly channel: Channel
  /** The model for its tests; undefined if it does not state one. */
  readonly preferredModel: unknown
}

/**
 * Reads a channel as if it were saved, with the same rules for addresses and secrets, without saving it. If
 * it lists no models yet, `model` is its only one.
 */
export async function draftChannel(
  parts: Pick<AdministrationParts, 'store' | 'liveConfig'>,
  { id, ...given }: z.output<typeof draftField>,
  model: string | null | undefined,
  by: Actor,
): Promise<Draft> {
  const read =
    id === undefined || id === null
      ? newChannel({ ...given, name: NAME })
      : changedChannel(await editableChannel(parts, id), given, by)
  const definition = { ...withModel(read, model), name: NAME }
  const channels = await parts.liveConfig.preview((stored) => ({
    ...stored,
    channels: [...stored.channels.filter(({ name }) => name !== NAME), unstored(definition)],
  }))
  const channel = channels.get(NAME)
  if (!channel) throw new GatewayError('invalid_request', `gateway.yaml declares a channel named "${NAME}"`)
  return { channel, preferredModel: read.family['test_model'] }
}

function withModel(channel: ChannelDefinition, model: string | null | undefined): ChannelDefinition {
  const { models } = channel.declared
  const isEmpty = Array.isArray(models) && models.length === 0
  return isEmpty && model ? { ...channel, declared: { ...channel.declared, models: [model] } } : channel
}
