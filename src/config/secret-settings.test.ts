import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { z } from 'zod'
import { SECRETS } from '../../test/stores/rows.ts'
import { declaredRows } from '../store/audit/declared-rows.ts'
import { declaredSettingsWithLines } from './declared-lines.ts'
import { declaredSettings } from './declared-settings.ts'
import { parseYamlDocument } from './document.ts'
import { type Field, secretSchemas } from './fields.ts'
import { GUARD_SERVICE_SCHEMAS } from './guard-services.ts'
import { fileSchema } from './read-sections.ts'

/** Begins the secrets of the file. */
const MARK = 'secret of '

/**
 * A value with every secret that a schema knows: a text with MARK and its path; undefined if there is none in it. The
 * secrets of a schema whose members depend on a value, as those of `match`, are not found.
 */
function withSecrets(schema: Field<unknown>, path: string): unknown {
  const options = { io: 'input', unrepresentable: 'any', metadata: secretSchemas } as const
  return valueOf(z.toJSONSchema(schema, options), path)
}

function valueOf(schema: object, path: string): unknown {
  const { secret, items, properties, additionalProperties } = schema as {
    secret?: true
    items?: object
    properties?: Record<string, object>
    additionalProperties?: object | false
  }
  if (secret) return `${MARK}${path}`
  if (items) {
    const item = valueOf(items, path)
    return item === undefined ? undefined : [item]
  }
  const members = { ...properties, ...(additionalProperties && { any: additionalProperties }) }
  const found = Object.entries(members).flatMap(([name, one]) => {
    const value = valueOf(one, `${path}.${name}`)
    return value === undefined ? [] : [[name, value] as const]
  })
  return found.length > 0 ? Object.fromEntries(found) : undefined
}

// Other tests cover users and channels.
const {
  users: _,
  channels: __,
  ...file
} = withSecrets(fileSchema(new Map(), 1), '') as Record<string, unknown>
const guards = Object.values(GUARD_SERVICE_SCHEMAS).map((schema) => ({
  match: withSecrets(schema, '.guards.match'),
}))
const { tree, ...document } = parseYamlDocument(stringify({ ...file, guards }), () => undefined)

/** The addresses of guards are shown, as they have no user and no query. */
const isAddress = (secret: string): boolean => /^secret of \.guards\.match\.\w+\.(?:base_)?url$/.test(secret)

/** The secrets in a value that is shown. */
function shownIn(value: unknown): string[] {
  const found = JSON.stringify(value).match(/secret of [^"]*/g) ?? []
  return found.filter((secret) => !isAddress(secret))
}

test('the audit log has no secret of a file that states every secret setting', () => {
  const rows = declaredRows(
    declaredSettings(tree, () => 1),
    SECRETS,
  )
  expect(rows.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['metrics_token', 'smtp', 'login', 'alerts', 'guards', 'mcp']),
  )
  expect(rows.flatMap(({ fields }) => shownIn(fields))).toEqual([])
})

test('GET /api/option/declared has no secret of a file that states every secret setting', () => {
  const { items } = declaredSettingsWithLines({ tree, ...document }, 'gateway.yaml')
  expect(items.map(({ path }) => path)).toEqual(
    expect.arrayContaining(['options.smtp.password', 'guards[1].match.webhook.headers.any', 'alerts[0].url']),
  )
  expect(shownIn(items)).toEqual([])
})
