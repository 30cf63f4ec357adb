import { GatewayError } from '../../errors.ts'
import { findChannel } from './find-channel.ts'
import type { AdministrationParts } from '../parts.ts'

/** The keys of a stored channel, one per line; throws `managed_by_file` for a declared one. */
export async function revealChannelKeys(parts: AdministrationParts, id: number): Promise<{ key: string }> {
  const found = await findChannel(parts, id)
  if ('stored' in found) {
    await parts.store.write('noteReveal', { kind: 'channel', ids: [id] })
    return { key: found.stored.keys.join('\n') }
  }
  throw new GatewayError(
    'managed_by_file',
    `the keys of the channel "${found.declared.name}" are in the configuration, and are not shown`,
  )
}
