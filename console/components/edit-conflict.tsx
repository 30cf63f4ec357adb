import { Button, Group, Modal } from '@mantine/core'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './side-by-side.module.css'
import type { Difference } from './differences.ts'

/** Asks which values to keep, because another user has changed the object of a form in the meantime. */
export function EditConflict({
  differences,
  onTake,
  onOverwrite,
  onClose,
}: {
  /** The fields that both users changed, with both values; undefined if there is no conflict. */
  readonly differences: readonly Difference[] | undefined
  readonly onTake: () => void
  readonly onOverwrite: () => void
  /** Closes the dialog; the form stays unchanged and unsaved. */
  readonly onClose: () => void
}) {
  const { conflict, common } = useTexts()
  return (
    <Modal
      opened={differences !== undefined}
      onClose={onClose}
      title={conflict.title}
      size="lg"
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <p>{differences?.length === 0 ? conflict.same : conflict.text}</p>
      {differences !== undefined && differences.length > 0 && (
        <table className={classes['both']}>
          <thead>
            <tr>
              <th scope="col">{conflict.field}</th>
              <th scope="col">{conflict.mine}</th>
              <th scope="col">{conflict.theirs}</th>
            </tr>
          </thead>
          <tbody>
            {differences.map(({ label, mine, theirs }) => (
              <tr key={label}>
                <th scope="row">{label}</th>
                <td>{mine === '' ? '–' : mine}</td>
                <td>{theirs === '' ? '–' : theirs}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" data-autofocus onClick={onTake}>
          {conflict.take}
        </Button>
        <Button color="red" onClick={onOverwrite}>
          {conflict.overwrite}
        </Button>
      </Group>
    </Modal>
  )
}
