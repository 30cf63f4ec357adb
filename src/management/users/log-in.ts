import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { SESSION_SECONDS } from '../../accounts/authentication/session-cookie.ts'
import { isBcrypt } from '../../domain/bcrypt-hash.ts'
import { type ManagedUser, USER_STATUS } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { SignInProof } from '../../store/operations/sign-ins.ts'
import type { AdministrationParts, ManagementParts } from '../parts.ts'
import { textField } from '../text-fields.ts'
import { claimedPasswordField } from './user-fields.ts'

const USERNAME = 'expected the name of a user'
const ACCESS_TOKEN = 'expected an access token'

/** The credentials of a login: a name and its password, or only an access token. */
export const loginInput = z
  .object(
    {
      username: textField(USERNAME).min(1).optional(),
      password: claimedPasswordField.optional(),
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

/** The credentials of a login. */
export type Credentials = PasswordCredentials | { readonly accessToken: string }

interface PasswordCredentials {
  readonly username: string
  readonly password: string
}

type Parts = Pick<
  AdministrationParts,
  'store' | 'passwords' | 'signIns' | 'settings' | 'hashAccessToken' | 'nowMs'
>

/** A user, and the value of the cookie of its new session. */
export interface LoggedIn {
  readonly user: ManagedUser
  readonly session: string
}

/**
 * Starts a session of 30 days for a client in the address block `from`. A refusal is recorded in the audit
 * log.
 */
export async function logIn(
  parts: Parts,
  credentials: Credentials,
  from: string,
  place: SignInPlace,
): Promise<LoggedIn> {
  try {
    return 'accessToken' in credentials
      ? await logInByToken(parts, credentials.accessToken, place)
      : await logInByPassword(parts, credentials, from, place)
  } catch (error) {
    const username = 'username' in credentials ? credentials.username : undefined
    await noteRefusal(parts, error, username)
    throw error
  }
}

/**
 * An unknown name, a wrong password and a user without a password get the same 401 after the same time. Only
 * a client with the right password learns that the user is banned: 403. An imported bcrypt hash is replaced
 * by an Argon2id hash.
 */
async function logInByPassword(
  parts: Parts,
  { username, password }: PasswordCredentials,
  from: string,
  place: SignInPlace,
): Promise<LoggedIn> {
  const { store, passwords, signIns } = parts
  if (!parts.settings().login.password)
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
  const session = await startSession(parts, user.id, { kind: 'password', passwordHash, newHash }, place)
  if (session === undefined) throw invalidCredentials()
  signIns.remember(username, from)
  return { user, session }
}

/**
 * The session ends with the access token. The token is found by its HMAC, so that timing reveals nothing
 * about its text.
 */
async function logInByToken(parts: Parts, accessToken: string, place: SignInPlace): Promise<LoggedIn> {
  const { store, hashAccessToken } = parts
  const owner = await store.read('userByAccessToken', hashAccessToken(accessToken))
  const user = owner && (await store.read('managedUser', { userId: owner.id }))
  if (!user) throw invalidToken()
  requireEnabled(user)
  const session = await startSession(parts, user.id, { kind: 'access token', accessToken }, place)
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

/** The origin of a sign-in, as the user sees it in the list of sessions. */
export interface SignInPlace {
  readonly address: string
  readonly userAgent: string | undefined
}

/**
 * Starts a session of 30 days, and resolves to the value of its cookie; undefined if the proof is no longer
 * valid.
 */
export async function startSession(
  { store, nowMs }: Pick<ManagementParts, 'store' | 'nowMs'>,
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
 * Adds a refused sign-in to the audit log. Errors other than refusals are ignored. If the log cannot be
 * written, the response is not affected.
 */
export async function noteRefusal(
  { store }: Pick<ManagementParts, 'store'>,
  error: unknown,
  username: string | undefined,
): Promise<void> {
  if (!(error instanceof GatewayError) || error.kind.status >= 500) return
  await store.write('noteRefusedSignIn', { username }).catch(() => {})
}
