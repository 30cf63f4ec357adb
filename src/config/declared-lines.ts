import { basename } from 'node:path'
import type { DeclaredFile, DeclaredLine } from '../domain/declared-file.ts'
import type { Json } from '../domain/json.ts'
import { isSecretSetting } from '../domain/secret-settings.ts'
import { type Path, pathText } from './diagnostics.ts'
import type { ParsedDocument } from './document.ts'
import { childOfNode, isMapping, itemsOfNode, keysOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

/** The sections of the file that the console's settings page shows. */
const SECTIONS = [
  'options',
  'rate_limits',
  'login',
  'alerts',
  'guards',
  'content_log',
  'groups',
  'models',
] as const
/** Shown in place of a secret. */
const SET = 'set'
/** Maximum number of settings that are listed, because a file may declare thousands of models. */
const MAX_LINES = 2000

/** The settings that the file declares in these sections, with their lines. Secrets are replaced by `set`. */
export function declaredSettingsWithLines(
  document: ParsedDocument,
  configFile: string | undefined,
): DeclaredFile {
  if (configFile === undefined) return { file: '', items: [] }
  const found = SECTIONS.flatMap((section) =>
    linesOf(childOfNode(document.tree, section), [section], document.lineOf),
  )
  return { file: basename(configFile), items: found.slice(0, MAX_LINES) }
}

function linesOf(node: YamlNode, path: Path, lineOf: ParsedDocument['lineOf']): DeclaredLine[] {
  const isPlainList = Array.isArray(node) && itemsOfNode(node).every((item) => item instanceof YamlScalar)
  if (node instanceof YamlScalar || isPlainList)
    return [{ path: pathText(path), line: lineOf(path), value: valueOf(node, path) }]
  if (Array.isArray(node))
    return itemsOfNode(node).flatMap((item, index) => linesOf(item, [...path, index], lineOf))
  if (!isMapping(node)) return []
  return keysOfNode(node).flatMap((key) => linesOf(childOfNode(node, key), [...path, key], lineOf))
}

function valueOf(node: YamlNode, path: Path): Json {
  const name = path.filter((step) => typeof step === 'string').join('.')
  if (isSecretSetting(name)) return SET
  if (!(node instanceof YamlScalar)) return itemsOfNode(node).map((item) => valueOf(item, path))
  // Show the text as written, with `${NAME}`, because the values of variables may be secrets.
  return typeof node.value === 'string' ? node.source : node.value
}
