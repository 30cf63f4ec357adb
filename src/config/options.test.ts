import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OPTIONS } from '../domain/options.ts'

test('docs/configuration.md lists all options in the order of the code, each with its default', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/configuration.md'), 'utf8')
  const section = page.slice(page.indexOf('\n## Options'), page.indexOf('\n### Browsers'))
  const rows = [...section.matchAll(/^\| `([a-z_]+)(?:\.\w+)?` \| (?:`(.*?)`)? *\|/gm)]
  const documented = new Map(rows.map(([, name = '', value]) => [name, value]))
  expect([...documented.keys()]).toEqual(Object.keys(OPTIONS))
  for (const [name, row] of Object.entries(OPTIONS)) {
    if (row.type !== 'flag' && row.type !== 'integer' && row.type !== 'choice') continue
    expect([name, documented.get(name)]).toEqual([name, String(row.default)])
  }
})
