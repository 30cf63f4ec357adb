import { z } from 'zod'
import type { ChannelDefinition } from '../../domain/records/channel.ts'
import { GatewayError } from '../../errors.ts'
import { someChannelFields } from './channel-fields.ts'
import { refuseDeclaredName } from './find-channel.ts'
import type { AdministrationParts } from '../parts.ts'
import { newChannel, unstored } from './new-channel.ts'

/** Maximum number of channels that one request may create. */
const MAX_CHANNELS_PER_REQUEST = 1000

/** A channel to create: its fields are below `channel`, or next to `mode`. */
export const newChannelBody = someChannelFields.extend({
  mode: z
    .enum(['single', 'batch', 'multi_to_single'], { error: 'expected single, batch or multi_to_single' })
    .default('single'),
  channel: someChannelFields
    .meta({ required: ['name', 'type'], description: 'The fields, where they are not beside it' })
    .optional(),
})

/**
 * Creates a channel with all its keys; with mode `batch`, one channel per key, with numbered names. Throws
 * `invalid_request` if the schema of gateway.yaml refuses it. Resolves to the ids when the channels are live.
 */
export async function createChannels(
  { store, liveConfig, nowMs }: AdministrationParts,
  { mode, channel, ...beside }: z.output<typeof newChannelBody>,
): Promise<{ ids: number[] }> {
  const single = newChannel(channel ?? beside)
  const channels = mode === 'batch' && single.keys.length > 1 ? numbered(single) : [single]
  for (const { name } of channels) refuseDeclaredName(liveConfig, name)
  const created_time = Math.floor(nowMs() / 1000)
  const ids = await liveConfig.change(
    (stored) => ({ ...stored, channels: [...stored.channels, ...channels.map(unstored)] }),
    () => store.write('createChannels', { channels, created_time }),
  )
  return { ids }
}

function numbered(channel: ChannelDefinition): ChannelDefinition[] {
  if (channel.keys.length > MAX_CHANNELS_PER_REQUEST) {
    throw new GatewayError(
      'invalid_request',
      `key: expected at most ${MAX_CHANNELS_PER_REQUEST} keys in a batch`,
    )
  }
  return channel.keys.map((key, index) => ({ ...channel, name: `${channel.name}-${index + 1}`, keys: [key] }))
}
