"""The policy's life: checkpoints and the updates that made them."""

from typing import Any

from sqlalchemy import Connection, select

from futureworld import faults
from futureworld.errors import StoreError
from futureworld.records import Checkpoint, Update
from futureworld.store import codec, schema
from futureworld.store.database import insert_new
from futureworld.store.part import Part


class Updates(Part):
    def add_checkpoint(self, checkpoint: Checkpoint) -> bool:
        """Store a checkpoint that no update made (version 0); False where it is there already.

        Raises StoreError where another checkpoint has its version.
        """
        with self.database.write() as connection:
            return _insert_checkpoint(connection, checkpoint)

    def add_update(self, update: Update, checkpoint: Checkpoint) -> bool:
        """Store an update with the checkpoint it made; False where that update is there already.

        Raises StoreError where the two do not belong together, or another update or checkpoint
        has their version.
        """
        made = (checkpoint.version, checkpoint.update_id, checkpoint.weight_hash)
        if made != (update.version, update.id, update.weight_hash):
            raise StoreError(f"update {update.id} made version {update.version}, its checkpoint says {made}")
        with self.database.write() as connection:
            if not insert_new(connection, schema.updates, [codec.update_row(update)], schema.updates.c.id):
                _check_same_update(connection, update)
                return False
            _insert_checkpoint(connection, checkpoint)
            faults.at("update.inserted")
        return True

    def updates(self) -> list[Update]:
        """Every update, by version."""
        with self.database.read() as connection:
            rows = connection.execute(select(schema.updates).order_by(schema.updates.c.version)).mappings()
            return [codec.update(row) for row in rows]

    def checkpoints(self) -> list[Checkpoint]:
        """Every checkpoint, by version."""
        with self.database.read() as connection:
            rows = connection.execute(select(schema.checkpoints).order_by(schema.checkpoints.c.version)).mappings()
            return [codec.checkpoint(row) for row in rows]

    def trained_ids(self) -> set[str]:
        """Ids of the trajectories that any update was made from."""
        return {id_ for update in self.updates() for id_ in update.trajectory_ids}


def _insert_checkpoint(connection: Connection, checkpoint: Checkpoint) -> bool:
    table = schema.checkpoints
    if insert_new(connection, table, [codec.checkpoint_row(checkpoint)], table.c.version):
        return True
    found: Any = connection.execute(select(table).where(table.c.version == checkpoint.version)).mappings().one()
    if codec.checkpoint(found) != checkpoint:
        raise StoreError(
            f"checkpoint {checkpoint.version} is stored with weights {found['weight_hash']} at {found['path']},"
            f" found {checkpoint.weight_hash} at {checkpoint.path}; a version is written once"
        )
    return False


def _check_same_update(connection: Connection, update: Update) -> None:
    table = schema.updates
    stored = connection.execute(select(table.c.id).where(table.c.version == update.version)).scalar()
    if stored != update.id:
        raise StoreError(
            f"version {update.version} was made by update {stored or 'none'}, found {update.id};"
            " a version is made once: start a new run for another one"
        )
