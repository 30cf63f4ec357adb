import { USER_STATUS, type UserRow } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import { liveUsers } from '../live-rows.ts'
import type { Db } from './operation.ts'

/** Throws `role_too_low` if the role is not below `roleBelow`. Runs in the transaction that writes. */
export function refuseRole({ username, role }: UserRow, roleBelow: number | undefined): void {
  if (roleBelow === undefined || role < roleBelow) return
  throw new GatewayError('role_too_low', `the role of the user "${username}" is not below yours`)
}

/** Throws if this is the last enabled root user. */
export async function refuseLastRoot(db: Db, { id, username, role }: UserRow): Promise<void> {
  if (role !== Role.root) return
  const other = await liveUsers(db)
    .select('id')
    .where('role', '=', Role.root)
    .where('status', '=', USER_STATUS.enabled)
    .where('id', '!=', id)
    .executeTakeFirst()
  if (other) return
  throw new GatewayError(
    'invalid_request',
    `"${username}" is the last root user: it cannot be disabled, demoted or deleted`,
  )
}
