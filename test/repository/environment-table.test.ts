import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readEnvironment } from '../../src/config/environment.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Variables that packages read: those of OpenTelemetry, and of the PostgreSQL driver. */
const OF_PACKAGES = [
  ...['', 'TRACES_', 'METRICS_', 'LOGS_'].flatMap((signal) => [
    `OTEL_EXPORTER_OTLP_${signal}HEADERS`,
    `OTEL_EXPORTER_OTLP_${signal}COMPRESSION`,
  ]),
  'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE',
  'OTEL_SERVICE_NAME',
  'OTEL_RESOURCE_ATTRIBUTES',
  'PGPASSWORD',
]

/** The names that the gateway reads from its environment. */
function askedNames(): Set<string> {
  const names = new Set<string>()
  const env = new Proxy<NodeJS.ProcessEnv>({}, { get: (_, name) => void names.add(String(name)) })
  readEnvironment(env)
  return names
}

/** Names of variables in the sources: those that are read directly, and those of OpenTelemetry. */
function writtenNames(): string[] {
  const sources = ['src', 'packages', 'bin'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /(?<!\.test)\.(?:ts|mjs)$/.test(path))
      .map((path) => readFileSync(join(ROOT, folder, path), 'utf8')),
  )
  const read = /\b(?:env|variables)(?:\.get\(|\[|\.)'?([A-Z][A-Z0-9_]+)\b|'(OTEL_\w+)'/g
  return sources.flatMap((text) => [...text.matchAll(read)].map(([, one, other]) => one ?? other ?? ''))
}

test('the documented table of environment variables has every variable that the program reads, and no other', () => {
  const section = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8').split('\n## Environment\n')[1]
  const cells = [...(section ?? '').matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = '']) => cell)
  const listed = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name))
  const read = new Set([...askedNames(), ...writtenNames(), ...OF_PACKAGES])
  expect(read.size).toBeGreaterThan(25)
  expect(listed).toHaveLength(read.size)
  expect(new Set(listed)).toEqual(read)
})
