import type { SourceReaders } from '@sluice/import/readers'
import { parseYamlDocument } from '../config/document.ts'
import { readTextFile } from '../config/text-file.ts'
import { packNode } from '../config/yaml-node.ts'
import { expectedOfTls, postgresUrl } from '../domain/database-url.ts'
import { connectInOrder, connectionPlan } from '../store/postgres/connect.ts'
import { mapDatabaseError } from '../store/postgres/failure.ts'

/** The functions with which the gateway reads its own database and configuration, for sources of imports. */
export const SOURCE_READERS: SourceReaders = {
  postgres: {
    isUrl: (text) => postgresUrl(text) !== undefined,
    async open(url, statementMs, connect) {
      const expected = expectedOfTls(url)
      if (expected !== undefined) throw new Error(`expected ${expected}`)
      const plan = connectionPlan(url, { statement_timeout: statementMs }, 'the address')
      try {
        const connected = await connectInOrder(plan, (ssl) => connect(plan.connectionString, ssl))
        return { connected, start: plan.start }
      } catch (error) {
        throw mapDatabaseError(error)
      }
    },
    explain: mapDatabaseError,
  },
  configuration: {
    text: readTextFile,
    parse(text) {
      const { tree, diagnostics } = parseYamlDocument(text, () => undefined)
      const [first] = diagnostics
      return { tree: packNode(tree), error: first && { line: first.line ?? 1, message: first.message } }
    },
  },
}
