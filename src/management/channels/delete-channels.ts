import { refuseDeclared } from './find-channel.ts'
import type { AdministrationParts } from '../parts.ts'

/** Deletes stored channels and returns how many existed. Throws if one of them is declared. */
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
