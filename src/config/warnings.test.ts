import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readConfig } from './config.ts'
import { formatDiagnostic } from './diagnostics.ts'
import { readEnvironment } from './environment.ts'

const folder = mkdtempSync(join(tmpdir(), 'warnings-'))
afterAll(() => rmSync(folder, { recursive: true }))

const TEXT = `
channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini] }]
models: { resting: { fallback: [gpt-4o-mini] } }
groups: { sales: {} }
guards:
  - { name: dlp, do: block, match: { secrets: true }, models: [nomodel, gpt-4o-mini, resting, files_read, disk_read],
      groups: [default, sales, defualt] }
mcp:
  servers: [{ name: files, url: "http://b/mcp" }]
  toolsets: [{ name: set, tools: ["nosuch.*", "files.*", "fi*.read"], groups: [sales, nope] }]
`

// docs/configuration.md: warns of probable mistakes.
test('there is a warning about each group, model and server in the scope of a guard or a toolset that nothing has', () => {
  const file = join(folder, 'scopes.yaml')
  writeFileSync(file, TEXT)
  const { warnings } = readConfig(readEnvironment({}, { config: file }, folder))
  expect(warnings.map((warning) => formatDiagnostic(warning).replace(`${folder}/`, ''))).toEqual([
    'scopes.yaml:6: guards[0].models[0]: no channel in gateway.yaml serves nomodel',
    'scopes.yaml:6: guards[0].models[4]: no channel in gateway.yaml serves disk_read',
    'scopes.yaml:7: guards[0].groups[2]: there is no group defualt in gateway.yaml (default?)',
    'scopes.yaml:10: mcp.toolsets[0].groups[1]: there is no group nope in gateway.yaml',
    'scopes.yaml:10: mcp.toolsets[0].tools[0]: there is no server in gateway.yaml for nosuch.*',
  ])
})

test('there is a warning about each name of a group or a model that a list could not repeat, in both files', () => {
  const file = join(folder, 'names.yaml')
  writeFileSync(
    file,
    `
channels: [{ name: a, protocol: chat, base_url: "http://a", models: [gpt-4o-mini], groups: [" sales"] }]
groups: { " sales": {}, "a,b": {} }
models: { "m ": { fallback: [gpt-4o-mini] } }
options: { prices_file: prices.yaml }
`,
  )
  writeFileSync(join(folder, 'prices.yaml'), '"n ": { input: 1, output: 2 }\n')
  const { warnings, settings } = readConfig(readEnvironment({}, { config: file }, folder))
  const group = 'expected a name without spaces around it, control characters and commas, found'
  const model = 'expected a name without spaces around it and control characters, found'
  expect(warnings.map((warning) => formatDiagnostic(warning).replace(`${folder}/`, ''))).toEqual([
    `names.yaml:3: groups[" sales"]: ${group} " sales"`,
    `names.yaml:3: groups["a,b"]: ${group} "a,b"`,
    `names.yaml:4: models["m "]: ${model} "m "`,
    `prices.yaml:1: ["n "]: ${model} "n "`,
  ])
  expect([...settings.groups.keys()]).toEqual(['default', ' sales', 'a,b'])
  expect(settings.channels[0]?.groups).toEqual([' sales'])
})
