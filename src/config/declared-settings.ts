import type { DeclaredSetting } from '../domain/audit.ts'
import type { Json } from '../domain/json.ts'
import { childOfNode, isMapping, itemsOfNode, keysOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

/** Sections of gateway.yaml whose entries are recorded one by one in the audit log. */
const SECTIONS = ['options', 'groups', 'models'] as const
/** Sections that are not recorded whole. Users are recorded when they are stored in the database. */
const ELSEWHERE: ReadonlySet<string> = new Set([...SECTIONS, 'channels', 'users'])

/**
 * The settings that a file declares, for the audit log: channels, options, groups, models and their prices,
 * and all other sections as options. `prices` is the prices file. `channelId` returns the id of the channel
 * with a name.
 */
export function declaredSettings(
  file: YamlNode,
  channelId: (name: string) => number,
  prices?: YamlNode,
): readonly DeclaredSetting[] {
  const found = SECTIONS.flatMap((section) => entriesOf(section, childOfNode(file, section)))
  const channels = itemsOfNode(childOfNode(file, 'channels')).map((one): DeclaredSetting => {
    const { name, ...value } = asMapping(one)
    const text = name instanceof YamlScalar ? String(name.value) : ''
    return { section: 'channels', name: text, id: channelId(text), value: writtenAs(value) }
  })
  const others = keysOfNode(file).filter((name) => !ELSEWHERE.has(name))
  const beneath = keysOfNode(prices)
    .filter((name) => childOfNode(childOfNode(childOfNode(file, 'models'), name), 'price') === undefined)
    .map((name) => setting('ratios', name, childOfNode(prices, name)))
  return [
    ...found,
    ...beneath,
    ...channels,
    ...others.map((name) => setting('options', name, childOfNode(file, name))),
  ]
}

function entriesOf(section: (typeof SECTIONS)[number], tree: YamlNode): DeclaredSetting[] {
  return keysOfNode(tree).flatMap((name) => {
    const entry = childOfNode(tree, name)
    if (section !== 'models') return [setting(section, name, entry)]
    const { price, ...others } = asMapping(entry)
    return [
      ...(price === undefined ? [] : [setting('ratios', name, price)]),
      ...(Object.keys(others).length === 0 ? [] : [setting('models', name, others)]),
    ]
  })
}

function setting(section: DeclaredSetting['section'], name: string, node: YamlNode): DeclaredSetting {
  return { section, name, id: null, value: writtenAs(node) }
}

function asMapping(node: YamlNode): Readonly<Record<string, YamlNode>> {
  return isMapping(node) ? node : {}
}

/** A YAML node as JSON, with `${NAME}` and `file:PATH` as written in the file instead of their values. */
function writtenAs(node: YamlNode): Json {
  if (node === undefined) return null
  if (node instanceof YamlScalar)
    return node.source.includes('${') || node.source === 'file:' ? node.source : node.value
  if (!isMapping(node)) return itemsOfNode(node).map(writtenAs)
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, writtenAs(value)]))
}
