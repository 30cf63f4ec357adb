import type { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import type { Actor } from '../authority.ts'
import { versionField, withPresent } from '../expected-version.ts'
import type { AdministrationParts } from '../parts.ts'
import { changedChannel } from './changed-channel.ts'
import { someChannelFields } from './channel-fields.ts'
import { storedObject } from './channel-object.ts'
import { CHANNEL_ID, editableChannel, refuseDeclaredName } from './find-channel.ts'
import { type ShownChannel, shownChannel } from './shown-channel.ts'

/** A change of a channel. Absent fields stay unchanged, and so do the keys if `key` is empty. */
export const channelChange = someChannelFields.extend({ id: CHANNEL_ID.id, version: versionField.nullish() })

/**
 * Changes a stored channel. Stored secrets are not sent to another address unless root makes the change.
 * Resolves to the changed channel when it is live.
 */
export async function updateChannel(
  parts: Pick<AdministrationParts, 'store' | 'liveConfig' | 'settings'>,
  { id, version, ...given }: z.output<typeof channelChange>,
  by: Actor,
): Promise<ShownChannel> {
  const { store, liveConfig } = parts
  const before = await editableChannel(parts, id)
  const channel = changedChannel(before, given, by)
  refuseDeclaredName(liveConfig, channel.name)
  const after = { ...before, ...channel }
  const next = await withPresent(
    () =>
      liveConfig.change(
        (stored) => ({ ...stored, channels: stored.channels.map((one) => (one.id === id ? after : one)) }),
        () => store.write('changeChannel', { id, channel, version: version ?? undefined }),
      ),
    async () => shownChannel(parts, storedObject(await editableChannel(parts, id))),
  )
  if (next === null) throw new GatewayError('not_found', `there is no channel with the id ${id}`)
  return shownChannel(parts, storedObject({ ...after, version: next }))
}
