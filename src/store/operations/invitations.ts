import { Role } from '../../domain/role.ts'
import { type ManagedUser, USER_STATUS } from '../../domain/records/user.ts'
import type { Budget } from '../../domain/budget.ts'
import { budgetFromColumns } from '../../domain/budget.ts'
import { GatewayError } from '../../errors.ts'
import { hmacOf, type Secrets } from '../secrets.ts'
import type { Db } from './operation.ts'
import { createUser } from './users.ts'

/** Maximum number of invitations of one inviter that are open at a time. */
const MAX_OPEN = 1000

/** What a user who accepts an invitation gets. */
interface InvitedTerms {
  readonly group: string
  /** Quota units. */
  readonly quota: number
  readonly budget: Budget | undefined
}

/** An invitation that can be accepted. Times are Unix seconds. */
export interface OpenInvitation extends InvitedTerms {
  readonly id: number
  /** Id of the user who invites; 0 for a command. */
  readonly inviterId: number
  /** Name of the user who invites; empty for a command. */
  readonly inviter: string
  readonly created_time: number
  readonly expires_time: number
}

/** Whose invitations: those of users whose role is below `role`, and of the user `self`; undefined for all. */
type InvitersWithin = { readonly role: number; readonly self: number } | undefined

/** Stores an invitation, with an HMAC in place of its token. Also removes expired ones. Resolves to its id. */
export async function createInvitation(
  db: Db,
  {
    token,
    inviterId,
    terms: { group, quota, budget },
    created_time,
    expires_time,
  }: {
    readonly token: string
    readonly inviterId: number
    readonly terms: InvitedTerms
    readonly created_time: number
    readonly expires_time: number
  },
  secrets: Secrets,
): Promise<{ readonly id: number }> {
  await db.deleteFrom('invitations').where('expires_time', '<=', created_time).execute()
  const { open } = await db
    .selectFrom('invitations')
    .select((eb) => eb.fn.countAll<number>().as('open'))
    .where('inviter_id', '=', inviterId)
    .executeTakeFirstOrThrow()
  if (open >= MAX_OPEN)
    throw new GatewayError(
      'invalid_request',
      `${open} invitations are open already: withdraw some of them first`,
    )
  return db
    .insertInto('invitations')
    .values({
      token_hash: hmacOf(secrets, 'invitation', token),
      inviter_id: inviterId,
      group_name: group,
      quota,
      budget: budget?.amount ?? 0,
      budget_period: budget?.period ?? '',
      created_time,
      expires_time,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
}

/** Lists open invitations, the newest first. */
export async function listInvitations(
  db: Db,
  { within, nowSeconds }: { readonly within: InvitersWithin; readonly nowSeconds: number },
): Promise<readonly OpenInvitation[]> {
  const rows = await openInvitations(db, nowSeconds).orderBy('invitations.id', 'desc').execute()
  return rows.filter((row) => isWithin(row, within)).map(invitationFromRow)
}

/** Finds the open invitation with this token, if its inviter may still invite; null if there is none. */
export async function findInvitation(
  db: Db,
  { token, nowSeconds }: { readonly token: string; readonly nowSeconds: number },
  secrets: Secrets,
): Promise<OpenInvitation | null> {
  const row = await openInvitations(db, nowSeconds)
    .where('invitations.token_hash', '=', hmacOf(secrets, 'invitation', token))
    .executeTakeFirst()
  return row ? invitationFromRow(row) : null
}

/** Withdraws an open invitation. Resolves to false if there is none with this id. */
export async function deleteInvitation(
  db: Db,
  { id, within }: { readonly id: number; readonly within: InvitersWithin },
): Promise<boolean> {
  const row = await openInvitations(db, 0).where('invitations.id', '=', id).executeTakeFirst()
  if (!row || !isWithin(row, within)) return false
  const { numDeletedRows } = await db.deleteFrom('invitations').where('id', '=', id).executeTakeFirst()
  return numDeletedRows > 0n
}

/**
 * Creates the user whom an invitation allows, and uses it up, in one transaction: of two acceptances at a time one creates
 * a user. Null if the invitation is not open any more. If the name is refused, the invitation stays open.
 */
export async function acceptInvitation(
  db: Db,
  {
    token,
    username,
    passwordHash,
    nowSeconds,
  }: {
    readonly token: string
    readonly username: string
    readonly passwordHash: string
    readonly nowSeconds: number
  },
  secrets: Secrets,
): Promise<ManagedUser | null> {
  const open = await findInvitation(db, { token, nowSeconds }, secrets)
  if (!open) return null
  const { numDeletedRows } = await db.deleteFrom('invitations').where('id', '=', open.id).executeTakeFirst()
  if (numDeletedRows === 0n) return null
  const user = {
    username,
    passwordHash,
    role: Role.user,
    status: USER_STATUS.enabled,
    group: open.group,
    quota: open.quota,
    limits: { budget: open.budget },
    accessToken: null,
    created_time: nowSeconds,
  }
  return createUser(db, user, secrets)
}

/** Selects invitations that have not expired, and whose inviter is a command or an administrator who may still invite. */
function openInvitations(db: Db, nowSeconds: number) {
  return db
    .selectFrom('invitations')
    .leftJoin('users', 'users.id', 'invitations.inviter_id')
    .selectAll('invitations')
    .select(['users.username as inviter', 'users.role as inviter_role'])
    .where('invitations.expires_time', '>', nowSeconds)
    .where((eb) =>
      eb.or([
        eb('invitations.inviter_id', '=', 0),
        eb.and([
          eb('users.deleted_time', 'is', null),
          eb('users.status', '=', USER_STATUS.enabled),
          eb('users.role', '>=', Role.admin),
        ]),
      ]),
    )
}

type InvitationRow = Awaited<ReturnType<ReturnType<typeof openInvitations>['execute']>>[number]

function isWithin({ inviter_id, inviter_role }: InvitationRow, within: InvitersWithin): boolean {
  if (!within) return true
  return inviter_id === within.self || (inviter_role !== null && inviter_role < within.role)
}

function invitationFromRow(row: InvitationRow): OpenInvitation {
  return {
    id: row.id,
    inviterId: row.inviter_id,
    inviter: row.inviter ?? '',
    group: row.group_name,
    quota: row.quota,
    budget: budgetFromColumns(row.budget, row.budget_period),
    created_time: row.created_time,
    expires_time: row.expires_time,
  }
}
