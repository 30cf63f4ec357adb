import type { Path } from './diagnostics.ts'
import type { Issue } from './issues.ts'
import { YamlScalar, type YamlNode } from './yaml-node.ts'

/** A value, or its last word, that a shell would expand: `$KEY`, `Bearer $KEY`. */
const UNBRACED = /(?:^|\s)\$[A-Za-z_]\w*$/

const MISSING_BRACES: Issue['message'] =
  'a variable is written ${NAME}, in braces: without braces the text is used literally'

/** Finds values that were probably meant as variables. Messages omit their text, which may be a secret. */
export function unbracedVariables(tree: YamlNode, path: Path = []): Issue[] {
  if (tree === undefined) return []
  if (tree instanceof YamlScalar)
    return UNBRACED.test(tree.source) ? [{ path: [...path], message: MISSING_BRACES }] : []
  return Object.entries(tree).flatMap(([key, below]) =>
    unbracedVariables(below, [...path, Array.isArray(tree) ? Number(key) : key]),
  )
}
