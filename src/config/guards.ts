import { checkedRegex, compileRule, RuleError } from '@sluice/screen/rule'
import { z } from 'zod'
import {
  type Guard,
  GUARD_ACTIONS,
  GUARD_FAILURES,
  GUARD_MODES,
  GUARD_PLACES,
  type GuardMatch,
  isTextMatch,
  type ServiceMatch,
  PII_KINDS,
  type TextMatch,
  MIN_CHECK_WINDOW,
  CHECK_WINDOW_OVERLAP,
} from '../domain/guard.ts'
import { GUARD_SERVICE_SCHEMAS } from './guard-services.ts'
import {
  durationSchema,
  type Field,
  flagSchema,
  integerSchema,
  type Issue,
  kindOf,
  listSchema,
  nameSchema,
  oneOfSchema,
  oneOrListSchema,
  InvalidValue,
  scalarSchema,
  sectionSchema,
  shareSchema,
  textSchema,
} from './fields.ts'
import {
  childOfNode,
  isFromVariable,
  itemsOfNode,
  keysOfNode,
  type YamlNode,
  YamlScalar,
} from './yaml-node.ts'

/** Maximum length of a guard's name in characters; names are in headers and in metrics. */
const MAX_NAME = 64
/** Maximum length in characters of the text that replaces a match. */
const MAX_WITH = 200
/** Maximum of a guard's `most_delay`, in characters. */
const MAX_DELAY = 1_000_000
/** Maximum of a guard's `match.most`, in characters. */
const MAX_MATCH = 4096
const DEFAULT_MATCH = 256
const DEFAULT_TIMEOUT_MS = 2_000

const guardName = textSchema(
  `a name of 1 to ${MAX_NAME} letters, digits, dots, hyphens and underscores`,
  (given) => (new RegExp(`^[A-Za-z0-9._-]{1,${MAX_NAME}}$`).test(given) ? given : undefined),
)

/** A regular expression in the syntax of RE2. */
const pattern = textSchema('a regular expression in the syntax of RE2', (given) => {
  const wrong = wrongIn(() => checkedRegex(given))
  return wrong === undefined
    ? given
    : new InvalidValue(`a regular expression in the syntax of RE2 (${wrong})`, { quotes: true })
})

/** The error in a match, as a text; undefined if the match can be compiled. */
function wrongMatch(match: TextMatch): string | undefined {
  return wrongIn(() => compileRule('guard', match))
}

function wrongIn(compile: () => unknown): string | undefined {
  try {
    compile()
    return undefined
  } catch (error) {
    if (error instanceof RuleError) return error.message
    throw error
  }
}

const word = textSchema('a word or a phrase', (given) => (given.trim() === '' ? undefined : given.trim()))

const on: Field<true> = scalarSchema('true', ({ value }) =>
  value === true || value === 'true' ? true : undefined,
)

/** Schemas for what a guard looks for, by the member of `match` that names the kind. */
const MATCHES = {
  regex: sectionSchema({
    regex: oneOrListSchema(pattern, 'a list of at least one regular expression'),
    most: integerSchema(1, MAX_MATCH).default(DEFAULT_MATCH),
  }).transform((match): GuardMatch => ({ kind: 'regex', ...match })),
  words: sectionSchema({ words: listSchema(word, 'a list of at least one word', 1) }).transform(
    (match): GuardMatch => ({ kind: 'words', ...match }),
  ),
  secrets: sectionSchema({ secrets: on }).transform((match): GuardMatch => ({ kind: 'secrets', ...match })),
  pii: sectionSchema({ pii: listSchema(oneOfSchema(PII_KINDS), 'a list of at least one kind', 1) }).transform(
    (match): GuardMatch => ({ kind: 'pii', ...match }),
  ),
  ...GUARD_SERVICE_SCHEMAS,
} as const satisfies Record<string, Field<GuardMatch>>

const KINDS = Object.keys(MATCHES) as (keyof typeof MATCHES)[]

/** What a guard looks for: a mapping whose members depend on its kind. */
const match: Field<GuardMatch> = z.unknown().transform((given, ctx): GuardMatch => {
  const named = keysOfNode(given as YamlNode)
  const found = KINDS.filter((kind) => named.includes(kind))
  const [kind] = found
  if (kind === undefined || found.length > 1) {
    const what = found.length > 1 ? found.join(' and ') : named.length > 0 ? named.join(', ') : 'nothing'
    const message = `expected a mapping with one of ${KINDS.join(', ')}, found ${what}`
    ctx.issues.push({ code: 'custom', message, input: undefined })
    return z.NEVER
  }
  const { data, error } = MATCHES[kind].safeParse(given)
  const wrong = data && isTextMatch(data) ? wrongMatch(data) : undefined
  if (data && wrong === undefined) return data
  if (wrong !== undefined) {
    const regex = childOfNode(given as YamlNode, 'regex')
    // The error quotes an expression.
    const detail = [regex, ...itemsOfNode(regex)].some(isFromVariable) ? '' : `: ${wrong}`
    const message = `expected a match that can be compiled${detail}`
    ctx.issues.push({ code: 'custom', message, input: undefined })
    return z.NEVER
  }
  for (const issue of error?.issues ?? []) ctx.issues.push({ ...issue, input: undefined })
  return z.NEVER
})

const written = textSchema(`a text of at most ${MAX_WITH} characters`, (given) =>
  given.length <= MAX_WITH && given.isWellFormed() ? given : undefined,
)

const scope = (what: string): Field<readonly string[] | undefined> =>
  listSchema(nameSchema(what), `a list of at least one: ${what}`, 1).optional()

/** Schema of a guard, which searches requests and answers for unwanted content. */
export const guardSchema: Field<Guard> = sectionSchema({
  name: guardName,
  where: listSchema(oneOfSchema(GUARD_PLACES), 'a list of at least one place', 1).default([...GUARD_PLACES]),
  do: oneOfSchema(GUARD_ACTIONS),
  mode: oneOfSchema(GUARD_MODES).default('enforce'),
  match,
  models: scope('the name of a model'),
  groups: scope('the name of a group'),
  users: scope('the name of a user'),
  tokens: scope('the name of a token'),
  sample: shareSchema('a share from 0 to 1').default(1),
  timeout: durationSchema.default(DEFAULT_TIMEOUT_MS),
  on_failure: oneOfSchema(GUARD_FAILURES).default('block'),
  charge: flagSchema.default(false),
  most_delay: integerSchema(0, MAX_DELAY).default(0),
  with: written.default('[REDACTED]'),
}).superRefine((guard, ctx) => {
  const { match, charge, most_delay: mostDelay } = guard
  const refuse = (name: string, expected: string): void => {
    ctx.addIssue({ code: 'custom', path: [name], message: `expected ${expected}` })
  }
  const isText = isTextMatch(match)
  if (!isTextMatch(match) && !SAYS_WHERE[match.kind] && CHANGES.has(guard.do))
    refuse('do', `block or flag, as ${match.kind} does not say where a match is, found ${guard.do}`)
  if (charge && match.kind !== 'moderation')
    refuse('charge', 'false, as only calls of moderation have a price')
  if (mostDelay > 0 && isText) refuse('most_delay', '0, as no service checks the texts')
  if (mostDelay > 0 && mostDelay < MIN_CHECK_WINDOW)
    refuse(
      'most_delay',
      `0, or at least ${MIN_CHECK_WINDOW} characters, as windows overlap by ${CHECK_WINDOW_OVERLAP}`,
    )
})

/** Whether a service says where in the text a match is; without that, a guard cannot change the text. */
const SAYS_WHERE: Readonly<Record<ServiceMatch['kind'], boolean>> = {
  moderation: false,
  webhook: true,
  presidio: true,
  bedrock: true,
  lakera: false,
}
/** Actions that need to know where in the text a match is. */
const CHANGES: ReadonlySet<string> = new Set(['redact', 'replace'])

/** Schema of the section `guards`: `docs/configuration.md: Guards`. */
export const guardsSchema: Field<readonly Guard[]> = listSchema(guardSchema, 'a list of guards')

/** Errors for guards that groups and tokens name but that the file does not declare. */
export function unknownGuards(tree: YamlNode): Issue[] {
  const declared = new Set(
    itemsOfNode(childOfNode(tree, 'guards')).flatMap((one) => {
      const given = childOfNode(one, 'name')
      return given instanceof YamlScalar ? [String(given.value)] : []
    }),
  )
  const groups = childOfNode(tree, 'groups')
  const named = [
    ...keysOfNode(groups).map((name) => ({ node: childOfNode(groups, name), path: ['groups', name] })),
    ...itemsOfNode(childOfNode(tree, 'users')).flatMap((user, u) =>
      itemsOfNode(childOfNode(user, 'tokens')).map((node, t) => ({ node, path: ['users', u, 'tokens', t] })),
    ),
  ]
  return named.flatMap(({ node, path }) =>
    itemsOfNode(childOfNode(node, 'guards')).flatMap((one, index): Issue[] => {
      if (!(one instanceof YamlScalar) || declared.has(String(one.value))) return []
      const message = `expected a guard that guards declares, found ${kindOf(one)}`
      return [{ path: [...path, 'guards', index], message }]
    }),
  )
}
