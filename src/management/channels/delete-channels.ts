import { z } from 'zod'
import { channelIdField, refuseDeclared } from './find-channel.ts'
import type { AdministrationParts } from '../parts.ts'

const IDS = 'expected ids of channels, at least one'

/** A body that names channels. */
export const channelIdsBody = z.object(
  {
    ids: z
      .array(z.unknown(), { error: IDS })
      .refine((ids) => ids.length > 0 && ids.every((id) => channelIdField.safeParse(id).success), {
        error: IDS,
      })
      .pipe(z.array(channelIdField)),
  },
  { error: 'expected an object with ids' },
)

/**
 * Removes channels that were set over HTTP; answers with how many there were. One that is declared refuses
 * all.
 */
export async function deleteChannels(
  { store, liveConfig }: AdministrationParts,
  ids: readonly number[],
): Promise<number> {
  for (const id of ids) refuseDeclared(liveConfig, id)
  const gone = new Set(ids)
  return liveConfig.change(
    (stored) => ({ ...stored, channels: stored.channels.filter(({ id }) => !gone.has(id)) }),
    () => store.write('deleteChannels', { ids: [...gone] }),
  )
}
