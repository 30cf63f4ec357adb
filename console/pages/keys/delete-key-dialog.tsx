import type { ApiKey } from '../../api/keys.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { useFormatters } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Asks for confirmation, with the key's name and its last use. */
export function DeleteKeyDialog({
  apiKey,
  onDelete,
  onClose,
}: {
  readonly apiKey: ApiKey | undefined
  readonly onDelete: (key: ApiKey) => Promise<void>
  readonly onClose: () => void
}) {
  const { keys, common } = useTexts()
  const { recent } = useFormatters()
  const used =
    apiKey && apiKey.accessed_time > 0 ? keys.lastUsedAt(recent(apiKey.accessed_time)) : keys.neverUsed
  return (
    <ConfirmDialog
      opened={apiKey !== undefined}
      title={keys.deleteTitle}
      text={apiKey ? `${keys.deleteText(apiKey.name)} ${used}` : ''}
      label={common.delete}
      onConfirm={async () => {
        if (apiKey) await onDelete(apiKey)
      }}
      onClose={onClose}
    />
  )
}
