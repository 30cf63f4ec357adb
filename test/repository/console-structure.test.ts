import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { describe, expect, test } from 'vitest'
import { ownUsageSchema } from '../../src/management/usage/usage-object.ts'

const ROOT = join(import.meta.dirname, '../..')
const CONSOLE = join(ROOT, 'console')

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/**
 * Fields of a call that only the API and the CSV have. A new field of the usage log is shown in the details of a call
 * (`console/pages/logs/call-details.tsx`) or in the table of calls (`console/components/call-table.tsx`), or is added here.
 */
const NOT_IN_CONSOLE = [
  // The lines of the cost have these counts, under the names of their prices.
  'audio_input_tokens',
  'image_input_tokens',
  'audio_output_tokens',
  'image_output_tokens',
  'images',
  'batch_saved',
  // These are of use to programs, or other parts of the page say the same.
  'use_time',
  'error_status',
  'requested_model',
  'content_sha256',
  'price_version',
  'transport',
]

/** Attributes whose text people see or hear. */
const SPOKEN = new Set(['label', 'title', 'placeholder', 'description', 'alt', 'aria-label', 'text'])
const A_LETTER = /\p{L}/u
/** Components are short, since their markup is. */
const MAX_COMPONENT_LINES = 120
const MAX_FILE_LINES = 300
const COLOUR = /#[\da-f]{3,8}\b|\b(?:rgb|hsl|lab|lch|oklch|oklab)a?\(/i

describe('the files of the console', () => {
  test('the console imports only types and the tables of src/domain from src, and nothing of src imports the console', () => {
    const fromConsole = sources().flatMap((file) =>
      importsOf(file)
        .filter(({ to }) => to.startsWith('src/') && !to.startsWith('src/domain/'))
        .filter(({ isType }) => !isType && !file.endsWith('.test.ts'))
        .map(({ to }) => `${name(file)} imports ${to}`),
    )
    const fromSrc = filesBelow(join(ROOT, 'src')).flatMap((file) =>
      importsOf(file).filter(({ to }) => to.startsWith('console/')),
    )
    expect([...fromConsole, ...fromSrc]).toEqual([])
  })

  test('the console has layers: pages do not import each other, and only app imports pages', () => {
    const breaches = sources().flatMap((file) =>
      importsOf(file).flatMap(({ to }) => (isBreach(name(file), to) ? [`${name(file)} imports ${to}`] : [])),
    )
    expect(breaches).toEqual([])
  })

  test.each([
    ['a page that imports another', 'console/pages/keys/a.tsx', 'console/pages/logs/b.tsx'],
    ['a part that imports a page', 'console/components/a.tsx', 'console/pages/logs/b.tsx'],
    ['a page that imports the frame', 'console/pages/keys/a.tsx', 'console/app/b.tsx'],
    ['requests that import components with markup', 'console/api/a.ts', 'console/components/b.tsx'],
  ])('a forbidden import is detected: %s', (_, from, to) => {
    expect(isBreach(from, to)).toBe(true)
  })

  test('files of the console have at most 300 lines, and components at most 120', () => {
    const long = sources().filter((file) => textOf(file).split('\n').length > MAX_FILE_LINES + 1)
    const longComponents = sources().flatMap((file) => {
      const text = textOf(file)
      return functionsOf(file).flatMap(({ id, start, end }) => {
        const lines = text.slice(start, end).split('\n').length
        return lines > MAX_COMPONENT_LINES ? [`${name(file)}: ${id} has ${lines} lines`] : []
      })
    })
    expect([...long.map(name), ...longComponents]).toEqual([])
  })

  test('the console shows every field of a call that users see, but for those named here', () => {
    const logs = sources()
      .filter((file) => /^console\/(?:components|pages\/logs)\//.test(name(file)))
      .map(textOf)
      .join('\n')
    const fields = Object.keys(ownUsageSchema.shape)
    const unread = fields.filter((field) => !new RegExp(`\\b${field}\\b`).test(logs))
    expect(unread.toSorted()).toEqual(NOT_IN_CONSOLE.toSorted())
  })

  test('visible texts of the console are in locales/', () => {
    expect(
      sources()
        .filter((file) => file.endsWith('.tsx'))
        .flatMap(literals),
    ).toEqual([])
  })

  test('colours of the console are only in the theme', () => {
    const named = filesBelow(CONSOLE, /\.(?:tsx?|css)$/)
      .filter((file) => name(file) !== 'console/app/theme.css')
      .filter((file) => COLOUR.test(textOf(file)))
    expect(named.map(name)).toEqual([])
  })

  test('the styles of every Mantine component of the console are loaded', () => {
    const styles = textOf(join(CONSOLE, 'app/styles.ts'))
    const used = sources().flatMap((file) =>
      [...textOf(file).matchAll(/import \{([^}]*)\} from '@mantine\/core'/g)].flatMap(([, names = '']) =>
        names.split(',').map((one) => one.replace('type ', '').trim()),
      ),
    )
    const missing = [...new Set(used)].filter(
      (one) =>
        existsSync(join(ROOT, `node_modules/@mantine/core/styles/${one}.css`)) &&
        !styles.includes(`/${one}.css'`),
    )
    expect(missing).toEqual([])
  })
})

/** The other folders of the console that each folder may import. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  app: ['pages', 'components', 'api', 'locales'],
  pages: ['components', 'api', 'locales'],
  components: ['api', 'locales'],
  api: [],
  locales: ['components'],
}

function isBreach(from: string, to: string): boolean {
  const [root, folder = '', page] = to.split('/')
  const [, ownFolder = '', ownPage] = from.split('/')
  if (root !== 'console') return false
  if (ownFolder === folder) return folder === 'pages' && page !== ownPage
  // Helpers without markup may be imported everywhere.
  if (folder === 'components' && to.endsWith('.ts')) return false
  return !(MAY_IMPORT[ownFolder]?.includes(folder) ?? true)
}

function importsOf(file: string): { readonly to: string; readonly isType: boolean }[] {
  return [...textOf(file).matchAll(/(import\s+type\b[^']*?|from\s*|import\(\s*|import\s+)'(\.[^']+)'/g)].map(
    ({ 1: before = '', 2: path = '', index }) => ({
      to: relative(ROOT, resolve(dirname(file), path)),
      isType: /^\s*import\s+type\b/.test(statementBefore(textOf(file), index) + before),
    }),
  )
}

/** The text of a statement before a position in it. */
function statementBefore(text: string, index: number): string {
  return text.slice(text.lastIndexOf('\nimport', index) + 1, index)
}

function literals(file: string): string[] {
  const found: string[] = []
  visit(astOf(file), (node) => {
    if (node.type === 'JSXText' && A_LETTER.test(String(node['value'])))
      found.push(String(node['value']).trim())
    if (node.type === 'JSXAttribute') {
      const { name: attribute, value } = node as unknown as { name: { name: string }; value: Node | null }
      if (SPOKEN.has(attribute.name) && value?.type === 'Literal' && A_LETTER.test(String(value['value'])))
        found.push(`${attribute.name}="${String(value['value'])}"`)
    }
    if (node.type === 'JSXExpressionContainer') {
      const { type, value } = node['expression'] as Node
      const isChild = type === 'Literal' && A_LETTER.test(String(value))
      if (isChild && textOf(file)[node.start - 1] === '>') found.push(String(value))
    }
  })
  return found.map((text) => `${name(file)}: ${text}`)
}

function functionsOf(file: string): { readonly id: string; readonly start: number; readonly end: number }[] {
  const found: { id: string; start: number; end: number }[] = []
  visit(astOf(file), ({ type, start, end, id }) => {
    if (type === 'FunctionDeclaration') found.push({ id: (id as { name: string }).name, start, end })
  })
  return found
}

function visit(node: Node, see: (node: Node) => void): void {
  see(node)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value])
      if (typeof child === 'object' && child !== null && 'type' in child) visit(child as Node, see)
  }
}

function astOf(file: string): Node {
  return parseAst(textOf(file), { lang: file.endsWith('x') ? 'tsx' : 'ts' }) as unknown as Node
}

function sources(): string[] {
  return filesBelow(CONSOLE)
}

function filesBelow(folder: string, ending = /\.tsx?$/): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => ending.test(path) && !path.startsWith('built/'))
    .map((path) => join(folder, path))
}

function textOf(file: string): string {
  return readFileSync(file, 'utf8')
}

function name(file: string): string {
  return relative(ROOT, file)
}
