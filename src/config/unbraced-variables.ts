import type { Path } from './diagnostics.ts'
import type { Issue } from './issues.ts'
import { Written, type Tree } from './yaml-node.ts'

/** A value, or its last word, that a shell would take for a variable: `$KEY`, `Bearer $KEY`. */
const UNBRACED = /(?:^|\s)\$[A-Za-z_]\w*$/

const TAKEN_AS_IT_STANDS: Issue['message'] =
  'a variable is written ${NAME}, in braces: without them this is taken letter by letter'

/**
 * Finds values that were probably meant as variables. Their text is not repeated: it may be a secret that
 * begins with `$`.
 */
export function unbracedVariables(tree: Tree, path: Path = []): Issue[] {
  if (tree === undefined) return []
  if (tree instanceof Written)
    return UNBRACED.test(tree.source) ? [{ path: [...path], message: TAKEN_AS_IT_STANDS }] : []
  return Object.entries(tree).flatMap(([key, below]) =>
    unbracedVariables(below, [...path, Array.isArray(tree) ? Number(key) : key]),
  )
}
