import { z } from 'zod'
import { channelIdField, refuseDeclared } from './find-channel.ts'
import type { AdministrationParts } from '../parts.ts'

const IDS = 'expected ids of channels, at least one'

/** A body with ids of channels. */
export const channelIdsBody = z.object(
  {
    ids: z
      .array(z.unknown().meta({ type: 'integer' }), { error: IDS })
      .refine((ids) => ids.length > 0 && ids.every((id) => channelIdField.safeParse(id).success), {
        error: IDS,
      })
      .transform((ids) => ids as number[]),
  },
  { error: 'expected an object with ids' },
)

/** Deletes stored channels and returns how many existed. A declared one among them makes it throw. */
export async function deleteChannels(
  { store, liveConfig }: AdministrationParts,
  ids: readonly number[],
): Promise<number> {
  for (const id of ids) refuseDeclared(liveConfig, id)
  const deleted = new Set(ids)
  return liveConfig.change(
    (stored) => ({ ...stored, channels: stored.channels.filter(({ id }) => !deleted.has(id)) }),
    () => store.write('deleteChannels', { ids: [...deleted] }),
  )
}
