import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { USER } from '../../domain/records/user.ts'
import type { Settings } from '../../domain/settings.ts'
import { GatewayError } from '../../errors.ts'
import type { OpenInvitation } from '../../store/operations/invitations.ts'
import { type Actor, OPERATOR, roleCeiling } from '../authority.ts'
import { idText, readInput, requireQuota, textField } from '../input-fields.ts'
import { requestBodySchemas, valueSchema } from '../record-schemas.ts'
import type { AdministrationServices, ManagementServices } from '../services.ts'
import { usageLimitChanges, usageLimitFields } from '../usage-limits.ts'
import { passwordField, requireGroup } from './user-object.ts'

/** How long an invitation can be accepted, in seconds. */
const VALID_S = 72 * 3600

const { group, quota } = requestBodySchemas(USER.fields, 'change')
const { budget, budget_period } = usageLimitFields

/** Input of an invitation: what the user gets who accepts it. */
export const newInvitationInput = z.object(
  { group, quota, budget, budget_period },
  { error: 'expected an object with group, quota, budget or budget_period' },
)

/** A new invitation. The token in the fragment of its link is in this response alone. */
export const newInvitationSchema = z.object({
  id: z.int(),
  link: z.string().describe('a path alone, unless options.public_url is set'),
  expires_at: z.int().describe('Unix seconds'),
})

export const invitationsSchema = z.array(
  z.object({
    id: z.int(),
    group: z.string(),
    quota: z.int(),
    budget: z.int(),
    budget_period: z.string(),
    inviter: z.string().describe('empty for a command'),
    created_at: z.int().describe('Unix seconds'),
    expires_at: z.int().describe('Unix seconds'),
  }),
)

/** The id of an invitation in a path. */
export const invitationIdText = idText('expected the id of an invitation')

type Services = Pick<ManagementServices, 'store' | 'settings' | 'nowMs'>

/** Makes an invitation to create an account with the lowest role. Throws if passwords are switched off. */
export async function inviteAs(
  { store, settings: live, nowMs }: Services,
  input: z.output<typeof newInvitationInput>,
  by: Actor,
): Promise<z.output<typeof newInvitationSchema>> {
  const settings = live()
  if (!settings.login.password)
    throw new GatewayError('invalid_request', 'an invitation needs a password, and login.password is off')
  const terms = { group: input.group ?? USER.defaults.group, quota: input.quota ?? 0 }
  requireGroup(settings, terms.group)
  requireQuota('quota', terms.quota, 0, settings)
  const token = randomBytes(32).toString('base64url')
  const created_time = Math.floor(nowMs() / 1000)
  const expires_time = created_time + VALID_S
  const { id } = await store.write('createInvitation', {
    token,
    inviterId: by.id,
    terms: { ...terms, budget: usageLimitChanges(input, undefined, settings).budget ?? undefined },
    created_time,
    expires_time,
  })
  // The fragment of an address is not sent to servers, so that it stands in no log.
  const { public_url: origin, base_path: basePath } = settings.options
  return { id, link: `${origin}${basePath}/invite#${token}`, expires_at: expires_time }
}

/** Makes an invitation as an operator. */
export function inviteUser(
  services: Services,
  given: z.input<typeof newInvitationInput>,
): Promise<z.output<typeof newInvitationSchema>> {
  return inviteAs(services, readInput(newInvitationInput, given), OPERATOR)
}

/** The open invitations of users whose role is below the actor's, and the actor's own; for root all. */
export async function invitationsFor(
  { store, nowMs }: Services,
  by: Actor,
): Promise<z.output<typeof invitationsSchema>> {
  const found = await store.read('listInvitations', {
    within: within(by),
    nowSeconds: Math.floor(nowMs() / 1000),
  })
  return found.map(
    ({ id, group: name, quota: units, budget: limit, inviter, created_time, expires_time }) => ({
      id,
      group: name,
      quota: units,
      budget: limit?.amount ?? 0,
      budget_period: limit?.period ?? '',
      inviter,
      created_at: created_time,
      expires_at: expires_time,
    }),
  )
}

/** All open invitations. */
export function listInvitations(services: Services): Promise<z.output<typeof invitationsSchema>> {
  return invitationsFor(services, OPERATOR)
}

/** Withdraws an open invitation. Throws `not_found` if the actor can see none with this id. */
export async function withdrawInvitationAs({ store }: Services, id: number, by: Actor): Promise<void> {
  if (await store.write('deleteInvitation', { id, within: within(by) })) return
  throw new GatewayError('not_found', `there is no open invitation with the id ${id}`)
}

const ID_INPUT = z.object({ id: z.int().positive() })

/** Withdraws an open invitation, as an operator. */
export async function withdrawInvitation(
  services: Services,
  given: z.input<typeof ID_INPUT>,
): Promise<{ readonly id: number }> {
  const { id } = readInput(ID_INPUT, given)
  await withdrawInvitationAs(services, id, OPERATOR)
  return { id }
}

function within(by: Actor): { readonly role: number; readonly self: number } | undefined {
  const role = roleCeiling(by)
  return role === undefined ? undefined : { role, self: by.id }
}

/** Input of an acceptance: the token of the invitation, and the name and password that the new user chooses. */
export const acceptanceInput = z.object(
  {
    token: textField('expected the token of an invitation').min(1).max(200),
    username: valueSchema(USER.fields.username.type),
    password: passwordField,
  },
  { error: 'expected an object with token, username and password' },
)

/**
 * Creates the user whom an invitation allows. An unknown, used, expired or withdrawn invitation is the same
 * error for every name. With an open one, a refused name is an error that says nothing about other users.
 */
export async function acceptInvitation(
  {
    store,
    passwords,
    signIns,
    settings,
    nowMs,
  }: Pick<AdministrationServices, 'store' | 'passwords' | 'signIns' | 'settings' | 'nowMs'>,
  { token, username, password }: z.output<typeof acceptanceInput>,
  from: string,
): Promise<{ readonly id: number; readonly username: string }> {
  return signIns.inTurn(from, async () => {
    const nowSeconds = Math.floor(nowMs() / 1000)
    requireOpen(await store.read('findInvitation', { token, nowSeconds }), settings())
    const passwordHash = await passwords.hash(password, from)
    const change = { token, username, passwordHash, nowSeconds }
    const user = await store.write('acceptInvitation', change).catch((error: unknown) => {
      if (!(error instanceof GatewayError) || error.code !== 'invalid_request') throw error
      throw new GatewayError('invalid_request', 'username: this name cannot be used here; choose another one')
    })
    if (!user) throw notOpen()
    return { id: user.id, username: user.username }
  })
}

function requireOpen(invitation: Pick<OpenInvitation, 'group'> | null, { login, groups }: Settings): void {
  if (!invitation || !login.password || !groups.has(invitation.group)) throw notOpen()
}

function notOpen(): GatewayError {
  return new GatewayError(
    'not_found',
    'this invitation cannot be accepted: it is unknown, used, withdrawn or expired; ask for another one',
  )
}
