import { Button, Group, Modal } from '@mantine/core'
import { useState } from 'react'
import { type ApiKey, rotateKey } from '../../api/keys.ts'
import type { ManagedUser } from '../../api/users.ts'
import { NewKeyField } from '../../components/new-key-field.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { useKeyChanges } from '../../components/use-key-changes.ts'
import { useTexts } from '../../locales/use-texts.tsx'

/** Asks whether a key is to be replaced by a new one, and shows the new one once. */
export function RotateKeyDialog({
  apiKey,
  owner,
  onClose,
}: {
  readonly apiKey: ApiKey | undefined
  readonly owner: ManagedUser | undefined
  readonly onClose: () => void
}) {
  const { keys, common } = useTexts()
  return (
    <Modal
      opened={apiKey !== undefined}
      onClose={onClose}
      title={keys.rotate}
      closeOnClickOutside={false}
      closeButtonProps={{ 'aria-label': common.close }}
    >
      {apiKey && <Rotation apiKey={apiKey} owner={owner} onClose={onClose} />}
    </Modal>
  )
}

function Rotation({
  apiKey,
  owner,
  onClose,
}: {
  readonly apiKey: ApiKey
  readonly owner: ManagedUser | undefined
  readonly onClose: () => void
}) {
  const { keys, common, users } = useTexts()
  const { reload } = useKeyChanges(owner?.id)
  const [secret, setSecret] = useState<string>()
  const rotating = useAction(async () => {
    setSecret(await rotateKey(apiKey.id, owner?.id))
    await reload()
  })
  if (secret !== undefined)
    return (
      <>
        <NewKeyField secret={secret} hint={owner ? users.keyOnce(owner.username) : keys.createdHint} />
        <Group justify="flex-end" mt="lg">
          <Button onClick={onClose}>{keys.done}</Button>
        </Group>
      </>
    )
  return (
    <>
      <p>{keys.rotateText(apiKey.name)}</p>
      <RefusalMessage error={rotating.error} />
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={onClose}>
          {common.cancel}
        </Button>
        <Button color="red" loading={rotating.isRunning} onClick={() => void rotating.run()}>
          {keys.rotate}
        </Button>
      </Group>
    </>
  )
}
