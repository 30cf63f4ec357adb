import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { consoleShellSchema } from '../../src/management/console-shell.ts'
import type { statusSchema } from '../../src/management/gateway-status.ts'
import type { identitiesSchema, sessionsSchema } from '../../src/management/users/own-account.ts'
import { ApiError, retryWhileBusy } from './api-error.ts'
import { basePath } from './base-path.ts'
import { queryString, request, send, repeatInNewSession, replaceSession } from './client.ts'

/** The signed-in account, and the information about the gateway that every page needs. */
export type AppShellData = z.output<typeof consoleShellSchema>

/** A key of the account that was used recently. */
export type RecentKey = AppShellData['recent_keys'][number]

/** The signed-in account. */
export type Profile = AppShellData['user']

/** A session in which the account is signed in, with its address and browser. */
export type Session = z.output<typeof sessionsSchema>[number]

/** An identity of the account at an identity provider. */
export type LinkedIdentity = z.output<typeof identitiesSchema>[number]

/** Credentials of a sign-in. */
export type Credentials =
  | { readonly username: string; readonly password: string }
  | { readonly access_token: string }

/** Requests the signed-in account and the information about the gateway that every page needs. */
export function fetchSession(): Promise<AppShellData> {
  return send<AppShellData>('GET', '/api/console')
}

/**
 * The data that every page needs. It is not refreshed by itself, because forms and the navigation depend on
 * it.
 */
export const appShellQuery = queryOptions({
  queryKey: ['shell'],
  queryFn: fetchSession,
  staleTime: Number.POSITIVE_INFINITY,
  retry: retryWhileBusy,
})

/**
 * The data that every page needs, refreshed every `everyMs` milliseconds while the page is visible. If the
 * session has ended, the user is asked to sign in again.
 */
export function refreshingAppShellQuery(everyMs: number, staleTime: number) {
  return queryOptions({
    ...appShellQuery,
    queryFn: () => request<AppShellData>('GET', '/api/console'),
    staleTime,
    refetchInterval: everyMs,
  })
}

/** A channel whose recent calls failed, so that administrators should look at it. */
export type ChannelIncident = NonNullable<AppShellData['incidents']>[number]

/** What administrators should look at, as the data that every page needs has it. */
export function troubleIn({ incidents, refused_configuration: refused }: AppShellData) {
  return { incidents: incidents ?? [], refused }
}

/**
 * The channels whose recent calls failed, and the configuration that was refused. They have a query of their
 * own, because refreshing all the data that every page needs would also refresh forms.
 */
export function troubleQuery(everyMs: number) {
  return queryOptions({
    queryKey: ['incidents'],
    queryFn: async () => troubleIn(await request<AppShellData>('GET', '/api/console')),
    staleTime: everyMs,
    refetchInterval: everyMs,
  })
}

/** The gateway's version, the ways to sign in, and how money is displayed; anyone may read them. */
export const signInMethodsQuery = queryOptions({
  queryKey: ['status'],
  queryFn: () => send<z.output<typeof statusSchema>>('GET', '/api/status'),
  staleTime: Number.POSITIVE_INFINITY,
})

/** The sessions in which the account is signed in. */
export function sessionsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'sessions'],
    queryFn: () => request<Session[]>('GET', '/api/user/self/sessions'),
  })
}

/** The identities of the account at identity providers. */
export function identitiesQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'identities'],
    queryFn: () => request<LinkedIdentity[]>('GET', '/api/user/self/identities'),
  })
}

/** Starts to link an identity at an identity provider. Resolves to the URL that the browser must open. */
export async function startIdentityLink(provider: string, next: string): Promise<string> {
  const { url } = await request<{ readonly url: string }>('POST', '/api/user/self/identities', {
    provider,
    next,
  })
  return url
}

/** Removes an identity at an identity provider from the account. */
export async function unlinkIdentity({ issuer, subject }: LinkedIdentity): Promise<void> {
  await request('DELETE', `/api/user/self/identities${queryString({ issuer, subject })}`)
}

/** Accepts an invitation: creates a user with this name and password, who can sign in then. */
export async function acceptInvitation(
  token: string,
  credentials: { readonly username: string; readonly password: string },
): Promise<void> {
  await send('POST', '/api/user/invite/accept', { token, ...credentials })
}

/** Signs in; the session is a cookie. */
export async function signIn(credentials: Credentials): Promise<void> {
  await send('POST', '/api/user/login', credentials)
}

/** Ends the session. Resolves to the URL that ends the session at an identity provider, if there is one. */
export async function signOut(): Promise<string | undefined> {
  const ended = await send<{ readonly logout_url: string } | undefined>('POST', '/api/user/logout')
  return ended?.logout_url
}

/**
 * The path at which a sign-in at an identity provider begins; it leads back to the page `next` of the
 * console.
 */
export function identityProviderPath(provider: string, next: string): string {
  return `${basePath}/api/user/oidc/${encodeURIComponent(provider)}?${new URLSearchParams({ next })}`
}

/** Ends one session in which the account is signed in, if it has not ended meanwhile. */
export async function endSession(id: string): Promise<void> {
  try {
    await request('DELETE', `/api/user/self/sessions/${encodeURIComponent(id)}`)
  } catch (error) {
    if (!(error instanceof ApiError && error.isNotFound)) throw error
  }
}

/** Changes the display name. */
export async function changeProfile(fields: { readonly display_name: string }): Promise<Profile> {
  return request<Profile>('PUT', '/api/user/self', fields)
}

/** Sets the first password of the account. */
export async function setFirstPassword(password: string): Promise<void> {
  await request('PUT', '/api/user/self', { password })
}

/** Changes the password of a user, which ends every session, and signs in with the new one. */
export async function changePassword(username: string, original: string, password: string): Promise<void> {
  await repeatInNewSession(() =>
    replaceSession(async () => {
      await send('PUT', '/api/user/self', { password, original_password: original })
      await signIn({ username, password })
    }),
  )
}

/** Creates a new access token; the old one becomes invalid. */
export async function createAccessToken(): Promise<string> {
  return request<string>('GET', '/api/user/token')
}
