import { queryOptions } from '@tanstack/react-query'
import type { TokenPage } from '../../src/management/tokens/list-tokens.ts'
import type { ManagedUserObject } from '../../src/management/users/user-object.ts'
import type { invitationsSchema } from '../../src/management/users/invitations.ts'
import type { z } from 'zod'
import type { groupBudgetsSchema } from '../../src/management/account-limits.ts'
import type { ListOrder } from '../components/sorting.ts'
import type { LimitFields } from '../components/limit-form-values.ts'
import type { LinkedIdentity } from './account.ts'
import { KEY_PAGE_SIZE, type NewKey } from './keys.ts'
import { queryString, request } from './client.ts'
import type { PageOfItems } from './page-of-items.ts'

/** A user, as administrators see it. */
export type ManagedUser = ManagedUserObject

/** The budget of a group, with its use. */
export type GroupBudget = z.output<typeof groupBudgetsSchema>[number]

export interface NewUser extends LimitFields {
  readonly username: string
  readonly password: string
  readonly role: number
  readonly group: string
  readonly quota: number
  readonly unlimited_quota: boolean
}

type Action = 'disable' | 'enable' | 'delete'

export const USER_PAGE_SIZE = 50

/** A page of users whose name contains `search`. */
export function usersQuery(userId: number, page: number, search: string, order: ListOrder = {}) {
  return queryOptions({
    queryKey: [userId, 'users', page, search, order],
    queryFn: () => {
      const query = queryString({ p: page, page_size: USER_PAGE_SIZE, keyword: search, ...order })
      return request<PageOfItems<ManagedUser>>('GET', `/api/user/${search === '' ? '' : 'search'}${query}`)
    },
  })
}

export function userQuery(userId: number, id: number) {
  return queryOptions({
    queryKey: [userId, 'user', id],
    queryFn: () => request<ManagedUser>('GET', `/api/user/${id}`),
  })
}

/** The names of all groups. */
export function groupsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'groups'],
    queryFn: () => request<readonly string[]>('GET', '/api/group/'),
  })
}

export function groupBudgetsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'group-budgets'],
    queryFn: () => request<readonly GroupBudget[]>('GET', '/api/group/budgets'),
  })
}

export function createUser(fields: NewUser): Promise<ManagedUser> {
  return request<ManagedUser>('POST', '/api/user/', fields)
}

export function changeUser(
  id: number,
  fields: LimitFields & {
    readonly display_name?: string
    readonly group?: string
    readonly role?: number
    readonly remark?: string
    readonly password?: string
    readonly unlimited_quota?: boolean
    readonly version?: string | undefined
  },
): Promise<ManagedUser> {
  return request<ManagedUser>('PUT', '/api/user/', { id, ...fields })
}

/** An invitation that is open. */
export type Invitation = z.output<typeof invitationsSchema>[number]

/** The open invitations that the signed-in administrator may withdraw. */
export function invitationsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'invitations'],
    queryFn: () => request<readonly Invitation[]>('GET', '/api/user/invite'),
  })
}

/** Makes an invitation, and returns its link, which is a path alone if the gateway does not know its address. */
export function invite(
  fields: Pick<LimitFields, 'budget' | 'budget_period'> & { readonly group: string; readonly quota: number },
): Promise<{ readonly link: string; readonly expires_at: number }> {
  return request('POST', '/api/user/invite', fields)
}

export async function withdrawInvitation(id: number): Promise<void> {
  await request('DELETE', `/api/user/invite/${id}`)
}

/** Disables, enables or deletes a user. */
export async function manageUser(id: number, action: Action): Promise<void> {
  await request('POST', '/api/user/manage', { id, action })
}

/** Adds `value` quota units to the quota of a user. */
export function addQuota(id: number, value: number): Promise<ManagedUser> {
  return request<ManagedUser>('POST', '/api/user/manage', { id, action: 'add_quota', mode: 'add', value })
}

/** A page of another user's keys, masked, newest first. */
export function userKeysQuery(userId: number, id: number, page: number) {
  return queryOptions({
    queryKey: [userId, 'user-keys', id, page],
    queryFn: () =>
      request<TokenPage>(
        'GET',
        `/api/user/${id}/tokens${queryString({ p: page, page_size: KEY_PAGE_SIZE })}`,
      ),
  })
}

/** Creates a key for another user, without a quota or other limits. Only this response contains the whole key. */
export function createUserKey(id: number, name: string): Promise<NewKey> {
  const fields = { name, expired_time: -1, remain_quota: 0, unlimited_quota: true }
  return request<NewKey>('POST', `/api/user/${id}/tokens`, fields)
}

/** The identities of another user. */
export function userIdentitiesQuery(userId: number, id: number) {
  return queryOptions({
    queryKey: [userId, 'user-identities', id],
    queryFn: () => request<readonly LinkedIdentity[]>('GET', `/api/user/${id}/identities`),
  })
}

/** Removes an identity at an identity provider from another user. This ends the user's sessions. */
export async function unlinkUserIdentity(id: number, { issuer, subject }: LinkedIdentity): Promise<void> {
  await request('DELETE', `/api/user/${id}/identities${queryString({ issuer, subject })}`)
}
