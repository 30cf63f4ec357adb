import { Button, Group, Modal } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { approveMcpTool, type McpTool } from '../../api/tools.ts'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from '../../components/side-by-side.module.css'

/** A tool's present definition beside the approved one, and a button that approves it. */
export function ApprovalDialog({ tool, onClose }: { readonly tool: McpTool; readonly onClose: () => void }) {
  const { tools: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const name = `${tool.server}_${tool.tool}`
  const isWithheld = tool.state === 'changed' || tool.state === 'new'
  const approving = useAction(async () => {
    await approveMcpTool(tool)
    await client.invalidateQueries({ queryKey: [profile.id, 'mcp'] })
    showNotice(t.approved(name))
    onClose()
  })
  return (
    <Modal opened onClose={onClose} title={name} size="xl" closeButtonProps={{ 'aria-label': common.close }}>
      <p>{t.stateHints[tool.state]}</p>
      <table className={classes['both']}>
        <thead>
          <tr>
            <th scope="col">{t.member}</th>
            <th scope="col">{t.approvedDefinition}</th>
            <th scope="col">{t.presentDefinition}</th>
          </tr>
        </thead>
        <tbody>
          {membersOf(tool).map(({ member, approved, present }) => (
            <tr key={member} data-differs={approved !== present}>
              <th scope="row">{member}</th>
              <td>{approved}</td>
              <td>{present}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <RefusalMessage error={approving.error} />
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={onClose}>
          {common.close}
        </Button>
        {isWithheld && (
          <Button loading={approving.isRunning} onClick={() => void approving.run()}>
            {t.approveDefinition}
          </Button>
        )}
      </Group>
    </Modal>
  )
}

interface Member {
  readonly member: string
  readonly approved: string
  readonly present: string
}

/** The members of both definitions as texts. */
function membersOf({ definition, approved_definition: approved, state }: McpTool): readonly Member[] {
  const before = state === 'approved' ? definition : (approved ?? {})
  return [...new Set([...Object.keys(definition), ...Object.keys(before)])].map((member) => ({
    member,
    approved: textOf(before[member]),
    present: textOf(definition[member]),
  }))
}

function textOf(value: unknown): string {
  if (value === undefined) return '–'
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)
}
