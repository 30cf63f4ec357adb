import type { Issue } from './issues.ts'
import { YamlScalar, type YamlNode } from './yaml-node.ts'

/** A value, or its last word, that a shell would expand: `$KEY`, `Bearer $KEY`. */
const UNBRACED = /(?:^|\s)\$[A-Za-z_]\w*$/

const MISSING_BRACES: Issue['message'] =
  'a variable is written ${NAME}, in braces: without braces the text is used literally'

/** Finds values that were probably meant as variables. Messages omit their text, which may be a secret. */
export function unbracedVariables(tree: YamlNode): Issue[] {
  const found: Issue[] = []
  const path: (string | number)[] = []
  collect(tree)
  return found

  function collect(node: YamlNode): void {
    if (node === undefined) return
    if (node instanceof YamlScalar) {
      if (node.source.includes('$') && UNBRACED.test(node.source))
        found.push({ path: [...path], message: MISSING_BRACES })
      return
    }
    for (const key of Object.keys(node)) {
      path.push(Array.isArray(node) ? Number(key) : key)
      collect((node as Readonly<Record<string, YamlNode>>)[key])
      path.pop()
    }
  }
}
