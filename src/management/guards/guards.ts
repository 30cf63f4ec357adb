import { Pseudonyms } from '@sluice/screen/pseudonyms'
import { compileRule } from '@sluice/screen/rule'
import { TextScreen } from '@sluice/screen/screen'
import { z } from 'zod'
import {
  actionOf,
  type Guard,
  GUARD_ACTIONS,
  GUARD_FAILURES,
  GUARD_MODES,
  GUARD_PLACES,
  isServiceGuard,
  isTextGuard,
  verdictOf,
} from '../../domain/guard.ts'
import { maskedGuardMatch } from '../../domain/guard-secrets.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { TEXT_BYTE_LIMITS } from '../../domain/text-length.ts'
import { unknownScopes } from '../../domain/unknown-scopes.ts'
import { GatewayError } from '../../errors.ts'
import { addGuardSums, delayP95, type GuardSums } from '../../telemetry/guard-figures.ts'
import { addCurrentObject, versionField } from '../expected-version.ts'
import { anyField, textField } from '../input-fields.ts'
import {
  addNamedEntry,
  changeNamedEntry,
  managedFields,
  type NamedSection,
  storedValues,
} from '../named-entries.ts'
import type { AdministrationServices } from '../services.ts'
import { restoreHiddenSecrets } from './restore-hidden-secrets.ts'

/** Maximum number of guards that can be added over HTTP. */
const MAX_GUARDS = 200
const SECTION: NamedSection<Guard> = {
  section: 'guards',
  noun: 'guard',
  maximum: MAX_GUARDS,
  entriesOf: ({ guards }) => guards,
  content: (guard) => guard,
}
/** Name of the question with which nodes ask each other for guard statistics. */
const FIGURES = 'guards'

/** A guard as responses show it, with its statistics of the last 24 hours. `docs/guards.md: Statistics`. */
export const guardSchema = z.object({
  name: z.string(),
  mode: z.enum(GUARD_MODES),
  where: z.array(z.enum(GUARD_PLACES)),
  do: z.enum(GUARD_ACTIONS),
  match: z.record(z.string(), z.unknown()).describe('as gateway.yaml declares it'),
  models: z.array(z.string()).nullable().describe('null for every model'),
  groups: z.array(z.string()).nullable(),
  users: z.array(z.string()).nullable(),
  tokens: z.array(z.string()).nullable(),
  sample: z.number(),
  timeout: z.int().describe('milliseconds'),
  on_failure: z.enum(GUARD_FAILURES),
  charge: z.boolean(),
  most_delay: z.int(),
  with: z.string(),
  managed: z.boolean().describe('whether gateway.yaml declares it, so that it can be changed there alone'),
  managed_by: z.string(),
  version: z.string(),
  warnings: z.array(z.string()).describe('models and groups of the guard that do not exist'),
  calls: z.int(),
  matches: z.int(),
  blocked: z.int(),
  failed: z.int(),
  delay_p95_ms: z.number().nullable(),
})

type GuardObject = z.output<typeof guardSchema>

const nameField = textField('expected the name of a guard', 64)

/** A setting of a guard, in the form that it has in gateway.yaml, whose schema checks it later. */
const member = anyField(TEXT_BYTE_LIMITS.list)
const declaration = z
  .object(
    {
      name: nameField,
      do: member.optional(),
      match: member.optional(),
      where: member.optional(),
      mode: member.optional(),
      with: member.optional(),
      models: member.optional(),
      groups: member.optional(),
      users: member.optional(),
      tokens: member.optional(),
      sample: member.optional(),
      timeout: member.optional(),
      on_failure: member.optional(),
      charge: member.optional(),
      most_delay: member.optional(),
    },
    { error: 'expected an object with name, do and match' },
  )
  .catchall(member)

/** Input with a guard to be added. */
export const newGuard = declaration

/** Input with a guard that replaces the one of the same name. */
export const changedGuard = declaration

/** Path parameters with the name of a guard. */
export const guardPath = z.object({ name: nameField })

/** Query parameters with the version of a guard on which its deletion is based. */
export const guardQuery = z.object({ version: versionField.optional() })

type GuardServices = Pick<
  AdministrationServices,
  'store' | 'settings' | 'liveConfig' | 'guardFigures' | 'otherNodes'
>

/**
 * All guards: first those in gateway.yaml, then those added over HTTP, with the sum of all nodes' statistics.
 */
export async function listGuards(services: GuardServices): Promise<GuardObject[]> {
  const { store, settings, guardFigures, otherNodes } = services
  const [configuration, reports = []] = await Promise.all([
    store.read('storedConfiguration'),
    otherNodes?.others(FIGURES),
  ])
  const stored = storedValues(configuration, SECTION)
  const others = reports.map(readReport).filter((one) => one !== undefined)
  const unknown = unknownScopes(settings())
  return settings().guards.map((guard) => {
    const known = others.flatMap((one) => one[guard.name] ?? [])
    const sums = known.reduce(addGuardSums, guardFigures.of(guard.name))
    const warnings = unknown(guard).map(({ message }) => message)
    return { ...guardObject(guard, stored.get(guard.name), sums), warnings }
  })
}

const report = z.record(
  z.string(),
  z.object({
    calls: z.int(),
    matches: z.int(),
    blocked: z.int(),
    failed: z.int(),
    delays: z.array(z.int()).max(1000),
  }),
)

// Other nodes may run another version, whose reports this one cannot read.
function readReport(text: string): z.output<typeof report> | undefined {
  try {
    return report.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

/** Answers other nodes that ask for this node's guard statistics. */
export function answerGuardFigureRequests(
  reports: NonNullable<AdministrationServices['otherNodes']>,
  { settings, guardFigures }: Pick<GuardServices, 'settings' | 'guardFigures'>,
): void {
  reports.answerWith(async () => {
    const sums = settings().guards.map(({ name }): [string, GuardSums] => [name, guardFigures.of(name)])
    return JSON.stringify(Object.fromEntries(sums))
  }, FIGURES)
}

function guardObject(guard: Guard, stored: Json | undefined, sums: GuardSums): Omit<GuardObject, 'warnings'> {
  const { match, where, models, groups, users, tokens, ...plain } = guard
  const { calls, matches, blocked, failed } = sums
  return {
    ...plain,
    where: [...where],
    match: maskedGuardMatch(match),
    models: listOf(models),
    groups: listOf(groups),
    users: listOf(users),
    tokens: listOf(tokens),
    ...managedFields(SECTION, guard, stored),
    calls,
    matches,
    blocked,
    failed,
    delay_p95_ms: delayP95(sums),
  }
}

function listOf(names: readonly string[] | undefined): string[] | null {
  return names ? [...names] : null
}

/** Adds a guard over HTTP. */
export async function addGuard(
  services: GuardServices,
  given: z.output<typeof newGuard>,
): Promise<GuardObject> {
  await addNamedEntry(services, SECTION, given.name, () => withSecrets(given, undefined))
  return present(services, given.name)
}

/** Fills hidden secrets (`***`) in a guard with those of the guard that it replaces. */
function withSecrets(given: z.output<typeof newGuard>, present: Guard | undefined): JsonObject {
  const match = restoreHiddenSecrets(given.match as Json | undefined, present?.match)
  return { ...given, ...(match !== undefined && { match }) } as JsonObject
}

/** Replaces a guard that was added over HTTP. */
export async function changeGuard(
  services: GuardServices,
  { version, ...given }: z.output<typeof changedGuard>,
): Promise<GuardObject> {
  await addCurrentObject(
    () =>
      changeNamedEntry(services, SECTION, { name: given.name, version }, (replaced) =>
        withSecrets(given, replaced),
      ),
    () => present(services, given.name),
  )
  return present(services, given.name)
}

/** Removes a guard that was added over HTTP. */
export function removeGuard(services: GuardServices, name: string, version?: string): Promise<void> {
  return changeNamedEntry(services, SECTION, { name, version }, () => undefined)
}

async function present(services: GuardServices, name: string): Promise<GuardObject> {
  const found = (await listGuards(services)).find((one) => one.name === name)
  if (!found) throw new GatewayError('not_found', `there is no guard "${name}"`)
  return found
}

/** Maximum size in bytes of a text with which guards are tried. */
const MAX_TEXT = 65_536
const EXPECTED_GUARDS = 'expected a list of names of guards'

/** Input with a text, and the guards to try with it: those named, all, or one that does not exist yet. */
export const guardTest = z.object(
  {
    text: textField('expected a text', MAX_TEXT),
    place: z.enum(GUARD_PLACES, { error: `expected one of ${GUARD_PLACES.join(', ')}` }).default('input'),
    guards: z.array(nameField, { error: EXPECTED_GUARDS }).max(MAX_GUARDS).nullish(),
    guard: declaration.nullish().describe('a guard in the form of gateway.yaml'),
  },
  { error: 'expected an object with a text' },
)

/** What guards would do with a text. */
export const guardTestSchema = z.object({
  text: z.string().describe('the text as it would go on; empty if it is blocked'),
  blocked_by: z.string().nullable(),
  verdicts: z.array(
    z.object({
      name: z.string(),
      verdict: z.enum(['allowed', 'flagged', 'redacted', 'blocked']),
      count: z.int(),
    }),
  ),
  matches: z
    .array(z.object({ start: z.int(), end: z.int(), name: z.string(), kind: z.string() }))
    .describe('positions in UTF-16 code units'),
})

/** Tries guards with a text. Nothing is sent to services, counted or stored. */
export async function testGuards(
  { settings, liveConfig }: Pick<AdministrationServices, 'settings' | 'liveConfig'>,
  { text, place, guards: names, guard }: z.output<typeof guardTest>,
): Promise<z.output<typeof guardTestSchema>> {
  const all = guard ? [liveConfig.readGuard(guard as JsonObject)] : settings().guards
  const unknown = names?.find((name) => all.every((one) => one.name !== name))
  if (unknown !== undefined) throw new GatewayError('not_found', `there is no guard "${unknown}"`)
  const asked = all.filter((one) => one.where.includes(place) && (names?.includes(one.name) ?? true))
  const tried = asked.filter(isTextGuard)
  const service = asked.find(isServiceGuard)
  if (service && (guard || names))
    throw new GatewayError(
      'invalid_request',
      `${guard ? 'guard' : 'guards'}: "${service.name}" is decided by a service, which is not asked here`,
    )
  const rules = tried.map((one) => ({
    rule: compileRule(one.name, one.match),
    do: actionOf(one, false),
    with: one.with,
  }))
  const screen = new TextScreen(rules)
  const pseudonyms = new Pseudonyms({ key: Buffer.from('a test'), user: '' })
  const { text: checked, counts, blockedBy } = screen.apply(text, pseudonyms)
  return {
    text: blockedBy === undefined ? checked : '',
    blocked_by: blockedBy === undefined ? null : (tried[blockedBy]?.name ?? null),
    verdicts: tried.map(({ name }, index) => {
      const count = counts[index] ?? 0
      return { name, verdict: verdictOf(rules[index]?.do ?? 'flag', count), count }
    }),
    matches: screen.find(text).map(({ start, end, rule, kind }) => ({
      start,
      end,
      name: tried[rule]?.name ?? '',
      kind,
    })),
  }
}
