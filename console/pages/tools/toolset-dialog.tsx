import { Modal, Stack, TagsInput, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useQueryClient } from '@tanstack/react-query'
import { type McpToolset, saveMcpToolset } from '../../api/tools.ts'
import { FormActions } from '../../components/form-actions.tsx'
import { showNotice } from '../../components/notify.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** A toolset: its patterns, and whose calls have it. */
export function ToolsetDialog({
  toolset,
  onClose,
}: {
  /** Undefined for a new toolset. */
  readonly toolset: McpToolset | undefined
  readonly onClose: () => void
}) {
  const { tools: t, common } = useTexts()
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const isLocked = toolset?.managed === true
  const form = useForm({
    mode: 'controlled',
    initialValues: {
      name: toolset?.name ?? '',
      tools: [...(toolset?.tools ?? [])],
      groups: [...(toolset?.groups ?? [])],
      users: [...(toolset?.users ?? [])],
    },
    validate: {
      name: (text) => (text.trim() === '' ? common.required : null),
      tools: (patterns) => (patterns.length === 0 ? common.required : null),
    },
  })
  const saving = useAction(async ({ name, tools, groups, users }: typeof form.values) => {
    const fields = {
      name: name.trim(),
      tools,
      ...(groups.length > 0 && { groups }),
      ...(users.length > 0 && { users }),
      ...(toolset && { version: toolset.version }),
    }
    await saveMcpToolset(fields, toolset === undefined)
    await client.invalidateQueries({ queryKey: [profile.id, 'mcp'] })
    showNotice(t.saved(name.trim()))
    onClose()
  })
  return (
    <Modal
      opened
      onClose={onClose}
      title={toolset?.name ?? t.addToolset}
      size="lg"
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <form noValidate onSubmit={form.onSubmit((typed) => void saving.run(typed))}>
        <Stack gap="md">
          {isLocked && <p>{t.fromFile}</p>}
          {!toolset && <TextInput label={t.toolset} data-autofocus {...form.getInputProps('name')} />}
          <TagsInput
            label={t.patterns}
            description={t.patternsHint}
            disabled={isLocked}
            {...form.getInputProps('tools')}
          />
          <TagsInput
            label={t.groups}
            description={t.scopeHint}
            disabled={isLocked}
            {...form.getInputProps('groups')}
          />
          <TagsInput label={t.users} disabled={isLocked} {...form.getInputProps('users')} />
          <RefusalMessage error={saving.error} />
        </Stack>
        {!isLocked && <FormActions label={common.save} isRunning={saving.isRunning} onCancel={onClose} />}
      </form>
    </Modal>
  )
}
