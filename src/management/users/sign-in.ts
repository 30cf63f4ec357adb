import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { VerifiedIdentity } from '../../accounts/authentication/oidc/oidc-client.ts'
import { SESSION_SECONDS } from '../../accounts/authentication/session-cookie.ts'
import { isBcrypt } from '../../domain/bcrypt-hash.ts'
import type { OidcProvider } from '../../domain/settings.ts'
import { isOfType } from '../../domain/records/field-types.ts'
import { type ManagedUser, USER, type User, USER_STATUS } from '../../domain/records/user.ts'
import { Role } from '../../domain/role.ts'
import { GatewayError } from '../../errors.ts'
import type { SignInProof } from '../../store/operations/sign-ins.ts'
import { textField } from '../input-fields.ts'
import type { AdministrationServices, ManagementServices } from '../services.ts'
import { passwordToCheckField } from './user-object.ts'

const USERNAME = 'expected the name of a user'
const ACCESS_TOKEN = 'expected an access token'

/** Input of a login: a username and its password, or only an access token. */
export const loginInput = z
  .object(
    {
      username: textField(USERNAME).min(1).optional(),
      password: passwordToCheckField.optional(),
      access_token: textField(ACCESS_TOKEN).min(1, { error: ACCESS_TOKEN }).optional(),
    },
    { error: 'expected an object with username and password' },
  )
  .transform(({ username, password, access_token: accessToken }, ctx): Credentials => {
    const refuse = (path: string, message: string): void =>
      void ctx.issues.push({ code: 'custom', path: [path], message, input: undefined })
    if (accessToken !== undefined) {
      if (username !== undefined) refuse('username', 'expected none beside access_token')
      if (password !== undefined) refuse('password', 'expected none beside access_token')
      return { accessToken }
    }
    if (username === undefined) refuse('username', USERNAME)
    if (password === undefined) refuse('password', 'expected a password')
    return { username: username ?? '', password: password ?? '' }
  })

/** The proof with which a user logs in: a username and its password, or an access token. */
type Credentials = PasswordCredentials | { readonly accessToken: string }

interface PasswordCredentials {
  readonly username: string
  readonly password: string
}

type Parts = Pick<
  AdministrationServices,
  'store' | 'passwords' | 'signIns' | 'settings' | 'hashAccessToken' | 'nowMs'
>

/** A user, and the cookie value of the new session. */
interface LoggedIn {
  readonly user: ManagedUser
  readonly session: string
}

/**
 * Starts a session of 30 days for a client whose address block is `from`. A refused attempt is recorded in
 * the audit log.
 */
export function logIn(
  services: Parts,
  credentials: Credentials,
  from: string,
  place: SignInPlace,
): Promise<LoggedIn> {
  return services.signIns.inTurn(from, () => logInNow(services, credentials, from, place))
}

async function logInNow(
  services: Parts,
  credentials: Credentials,
  from: string,
  place: SignInPlace,
): Promise<LoggedIn> {
  try {
    return 'accessToken' in credentials
      ? await logInByToken(services, credentials.accessToken, place)
      : await logInByPassword(services, credentials, from, place)
  } catch (error) {
    const username = 'username' in credentials ? credentials.username : undefined
    await noteRefusal(services, error, username)
    throw error
  }
}

/**
 * Checks a password. An unknown name, a wrong password and a user without a password cause the same 401 after
 * the same time. Only a client with the right password learns that a user is disabled (403). An imported
 * bcrypt hash is replaced by an Argon2id hash.
 */
async function logInByPassword(
  services: Parts,
  { username, password }: PasswordCredentials,
  from: string,
  place: SignInPlace,
): Promise<LoggedIn> {
  const { store, passwords, signIns } = services
  if (!services.settings().login.password)
    throw new GatewayError('sign_in_refused', 'this gateway does not accept passwords: login.password is off')
  const found = await store.read('credentials', { username })
  const passwordHash = found?.passwordHash ?? null
  const isRight = await passwords.verify(passwordHash, password, from)
  if (!found || passwordHash === null || !isRight) {
    if (await store.read('hasBcryptPasswords')) await passwords.spendOtherTime(passwordHash, password, from)
    throw invalidCredentials()
  }
  const { user } = found
  requireEnabled(user)
  const newHash = isBcrypt(passwordHash) ? await passwords.hash(password, from) : undefined
  const session = await startSession(services, user.id, { kind: 'password', passwordHash, newHash }, place)
  if (session === undefined) throw invalidCredentials()
  signIns.remember(username, from)
  return { user, session }
}

/**
 * Checks an access token. The session ends when the token is revoked. The token is looked up by its HMAC, so
 * that the time this takes reveals nothing about the token.
 */
async function logInByToken(services: Parts, accessToken: string, place: SignInPlace): Promise<LoggedIn> {
  const { store, hashAccessToken } = services
  const owner = await store.read('userByAccessToken', hashAccessToken(accessToken))
  const user = owner && (await store.read('managedUser', { userId: owner.id }))
  if (!user) throw invalidToken()
  requireEnabled(user)
  const session = await startSession(services, user.id, { kind: 'access token', accessToken }, place)
  if (session === undefined) throw invalidToken()
  return { user, session }
}

function requireEnabled({ status }: ManagedUser): void {
  if (status !== USER_STATUS.enabled) throw new GatewayError('user_disabled', 'this user has been banned')
}

function invalidCredentials(): GatewayError {
  return new GatewayError('unauthorized', 'username or password is incorrect, or the user has been banned')
}

function invalidToken(): GatewayError {
  return new GatewayError('unauthorized', 'invalid access token')
}

/** Maximum number of characters of a `User-Agent` that are stored. */
const MAX_USER_AGENT = 256

/** Where a sign-in comes from, as the user sees it in the list of sessions. */
interface SignInPlace {
  readonly address: string
  readonly userAgent: string | undefined
}

/**
 * Starts a session of 30 days. Resolves to its cookie value, or to undefined if the proof (such as the
 * password) is no longer valid.
 */
async function startSession(
  { store, nowMs }: Pick<ManagementServices, 'store' | 'nowMs'>,
  userId: number,
  proof: SignInProof,
  { address, userAgent = '' }: SignInPlace,
): Promise<string | undefined> {
  const cookieValue = randomBytes(32).toString('base64url')
  const created_time = Math.floor(nowMs() / 1000)
  const isBegun = await store.write('beginSession', {
    userId,
    cookieValue,
    proof,
    created_time,
    expiresTime: created_time + SESSION_SECONDS,
    address,
    userAgent: userAgent.slice(0, MAX_USER_AGENT),
  })
  return isBegun ? cookieValue : undefined
}

/**
 * Records a refused sign-in in the audit log. Errors of the gateway itself (status 500 and above) are not
 * recorded. If the recording fails, the response stays the same.
 */
async function noteRefusal(
  { store }: Pick<ManagementServices, 'store'>,
  error: unknown,
  username: string | undefined,
): Promise<void> {
  if (!(error instanceof GatewayError) || error.kind.status >= 500) return
  await store.write('recordRefusedSignIn', { username }).catch(() => {})
}

type IdentitySignInServices = Pick<ManagementServices, 'store' | 'ledger' | 'apiKeys' | 'nowMs'>

/**
 * Starts a session for a person whom an identity provider has identified. The user is found only by issuer
 * and subject. At the first sign-in a user is created, if the provider's settings allow that. Group and role
 * are updated from the provider at every sign-in. Throws 403 if the user is disabled or cannot be created.
 */
export async function signInByIdentity(
  services: IdentitySignInServices,
  provider: OidcProvider,
  identity: VerifiedIdentity,
  place: SignInPlace,
): Promise<{ readonly user: ManagedUser; readonly session: string }> {
  try {
    return await sessionFor(services, provider, identity, place)
  } catch (error) {
    await noteRefusal(services, error, undefined)
    throw error
  }
}

async function sessionFor(
  services: IdentitySignInServices,
  provider: OidcProvider,
  identity: VerifiedIdentity,
  place: SignInPlace,
): Promise<{ readonly user: ManagedUser; readonly session: string }> {
  const { issuer, subject, logoutUrl } = identity
  const rights = rightsFromClaims(provider, identity.claims)
  const found =
    (await services.store.read('userByIdentity', { issuer, subject })) ??
    (await createdUser(services, provider, identity, rights))
  if (found.status !== USER_STATUS.enabled)
    throw new GatewayError('user_disabled', 'this user has been banned')
  const user = await withRights(services, found, rights)
  const proof = { kind: 'identity', issuer, subject, logoutUrl } as const
  const session = await startSession(services, user.id, proof, place)
  if (session === undefined) throw refusal('the user was changed meanwhile; start again')
  return { user, session }
}

async function withRights(
  { ledger, apiKeys }: IdentitySignInServices,
  user: ManagedUser,
  rights: DirectoryRights,
): Promise<ManagedUser> {
  const fields = rightsToChange(user, rights)
  if (Object.keys(fields).length === 0) return user
  const changed = await ledger.changeUser({ userId: user.id, fields })
  apiKeys.forgetUser(user.id)
  return changed ?? user
}

async function createdUser(
  { store, nowMs }: IdentitySignInServices,
  { name, create, usernameClaim }: OidcProvider,
  { issuer, subject, claims }: VerifiedIdentity,
  { group, role }: DirectoryRights,
): Promise<ManagedUser> {
  if (!create) throw refusal(`no user here belongs to your account at "${name}"; ask an administrator`)
  const { [usernameClaim]: username, name: displayName } = claims
  if (!isOfType(USER.fields.username.type, username))
    throw refusal(`the claim "${usernameClaim}" that "${name}" sends is missing, or no username`)
  try {
    return await store.write('createUserOfIdentity', {
      identity: { issuer, subject },
      user: {
        username,
        display_name: isOfType(USER.fields.display_name.type, displayName) ? displayName : undefined,
        role: role ?? Role.user,
        status: USER_STATUS.enabled,
        group: group ?? 'default',
        quota: 0,
        accessToken: null,
        created_time: Math.floor(nowMs() / 1000),
      },
    })
  } catch (error) {
    // The user may exist by now, because the same person signed in at the same time, possibly on another
    // node.
    const present = await store.read('userByIdentity', { issuer, subject })
    if (present) return present
    // The name is taken or looks like that of another user, who may be another person. The sign-in is
    // refused.
    if (error instanceof GatewayError && error.code === 'invalid_request')
      throw refusal(`${error.message}; ${WAY_OUT}`)
    throw error
  }
}

const WAY_OUT =
  'ask an administrator for a user with another name, sign in as that user, and link your account to it'

function refusal(sentence: string): GatewayError {
  return new GatewayError('sign_in_refused', sentence)
}

/** The group of users whose claims match none of the configured groups. */
const DEFAULT_GROUP = 'default'

/** What an identity provider decides about a user; undefined values are managed in the gateway. */
interface DirectoryRights {
  readonly group: string | undefined
  readonly role: Exclude<Role, typeof Role.root> | undefined
}

/**
 * Group and role that follow from the claims of a sign-in. A claim that is missing, or is neither a text nor
 * a list of texts, means that the person is in no group.
 */
export function rightsFromClaims(
  { groupClaim, groups, admins }: OidcProvider,
  claims: Readonly<Record<string, unknown>>,
): DirectoryRights {
  if (groupClaim === undefined) return { group: undefined, role: undefined }
  const claimed = new Set([claims[groupClaim]].flat().filter((value) => typeof value === 'string'))
  const mapped = [...groups].find(([value]) => claimed.has(value))
  const isAdmin = admins.some((value) => claimed.has(value))
  return {
    group: groups.size === 0 ? undefined : (mapped?.[1] ?? DEFAULT_GROUP),
    role: admins.length === 0 ? undefined : isAdmin ? Role.admin : Role.user,
  }
}

/**
 * The group and role that must be changed. Root stays root, so that no identity provider can take over the
 * operator's account.
 */
export function rightsToChange(
  { group, role }: Pick<User, 'group' | 'role'>,
  rights: DirectoryRights,
): { readonly group?: string; readonly role?: Role } {
  return {
    ...(rights.group !== undefined && rights.group !== group && { group: rights.group }),
    ...(rights.role !== undefined && role !== Role.root && rights.role !== role && { role: rights.role }),
  }
}
