import { Button, Group, Modal } from '@mantine/core'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './changed-meanwhile.module.css'
import type { Difference } from './differences.ts'

/** Asks which values to keep, where another user changed the object of a form in the meantime. */
export function ChangedMeanwhile({
  differences,
  onTake,
  onOverwrite,
  onClose,
}: {
  /** Undefined if no other user changed the object. */
  readonly differences: readonly Difference[] | undefined
  readonly onTake: () => void
  readonly onOverwrite: () => void
  /** Closes the dialog; the form stays unchanged and unsaved. */
  readonly onClose: () => void
}) {
  const { meanwhile, common } = useTexts()
  return (
    <Modal
      opened={differences !== undefined}
      onClose={onClose}
      title={meanwhile.title}
      size="lg"
      closeButtonProps={{ 'aria-label': common.close }}
    >
      <p>{differences?.length === 0 ? meanwhile.same : meanwhile.text}</p>
      {differences !== undefined && differences.length > 0 && (
        <table className={classes['both']}>
          <thead>
            <tr>
              <th scope="col">{meanwhile.field}</th>
              <th scope="col">{meanwhile.mine}</th>
              <th scope="col">{meanwhile.theirs}</th>
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
          {meanwhile.take}
        </Button>
        <Button color="red" onClick={onOverwrite}>
          {meanwhile.overwrite}
        </Button>
      </Group>
    </Modal>
  )
}
